"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from meantime.system import atomic_file
from meantime.system.atomic_file import drafted, make_file, replace_file


class Synced:
    """What was synced, by its name at that moment."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        monkeypatch.setattr(atomic_file.os, "fsync", self._fsync)

    def _fsync(self, fd: int) -> None:
        self.names.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("draft", ["", "draft"])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_a_file_is_replaced_with_the_mode_that_is_asked_for(tmp_path: Path, draft: str, mode: int):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    replace_file(path, b"new", mode=mode, draft=draft)
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path):
    (tmp_path / "target").write_bytes(b"somebody's")
    path = tmp_path / "file"
    path.symlink_to("target")
    replace_file(path, b"ours")
    assert (tmp_path / "target").read_bytes() == b"somebody's"
    assert not path.is_symlink()


def test_a_draft_is_never_written_through_a_link(tmp_path: Path):
    (tmp_path / "target").write_bytes(b"somebody's")
    (tmp_path / "draft").symlink_to("target")
    with pytest.raises(OSError, match="symbolic link"):
        replace_file(tmp_path / "file", b"ours", draft="draft")
    assert (tmp_path / "target").read_bytes() == b"somebody's"


def test_a_draft_that_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def half(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), drafted(path, half):
        pass
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_draft_of_a_crash_is_overwritten_by_the_next_of_that_name(tmp_path: Path):
    (tmp_path / "draft").write_bytes(b"much longer than what comes now")
    replace_file(tmp_path / "file", b"new", draft="draft")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_draft_that_is_linked_and_not_moved_is_removed(tmp_path: Path):
    with drafted(tmp_path / "file", lambda file: file.write(b"new")) as new:
        os.link(new, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_the_bytes_are_synced_before_the_name_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    synced = Synced(monkeypatch)
    replace_file(tmp_path / "file", b"1", draft="draft", durable=True)
    assert synced.names == ["draft", tmp_path.name]


def test_each_sync_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced = Synced(monkeypatch)
    replace_file(tmp_path / "file", b"1", draft="draft", synced=False)
    assert synced.names == []
    replace_file(tmp_path / "file", b"2", draft="draft")
    assert synced.names == ["draft"]


def test_a_file_that_is_there_stays_when_it_is_made_once_more(tmp_path: Path):
    make_file(tmp_path / "key", b"first")
    make_file(tmp_path / "key", b"second")
    assert (tmp_path / "key").read_bytes() == b"first"
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_file_is_made_once_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    make_file(tmp_path / "key", b"first")
    make_file(tmp_path / "key", b"second")
    assert (tmp_path / "key").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_disk_that_is_full_leaves_no_half_of_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A key of no bytes would be refused at every start."""

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="full"):
        make_file(tmp_path / "key", b"first")
    assert list(tmp_path.iterdir()) == []
