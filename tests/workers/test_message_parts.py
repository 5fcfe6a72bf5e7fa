"""Messages in parts, signatures, and the journal."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from meantime import InvalidInput
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task, Work
from meantime.kernel.placement import check_place, place_of
from meantime.system import atomic_file
from meantime.workers.journal import ClaimJournal
from meantime.workers.message_parts import MOST_OPEN, PIECE, PartAssembly, cut
from meantime.workers.messages import GrantedMessage
from meantime.workers.owner_key import Signer, Verifier
from meantime.workers.worker_state import JournalEntry, without_secrets


def _granted(nonce: str = "n", **given: object) -> GrantedMessage:
    work = Work("shell", "cat", {"command": "cat", "cwd": "/", "stdin": "hunter2"})
    task = Task(id="t_1", thread="a", work=work, status=Status.RUNNING, run=Run())
    return GrantedMessage(nonce=nonce, task=task, **given)  # type: ignore[arg-type]


def test_parts_of_a_message_arrive_in_any_order_and_again():
    data = os.urandom(3 * PIECE + 5)
    parts = cut(data)
    assert len(parts) == 4
    shuffled = [*parts[:2], *parts]
    random.Random(1).shuffle(shuffled)
    joined = PartAssembly()
    found = [one for one in (joined.joined(part) for part in shuffled) if one is not None]
    assert found[0] == data


def test_a_message_that_is_sent_again_fills_the_gaps():
    data = os.urandom(2 * PIECE)
    first, second = cut(data)
    joined = PartAssembly()
    assert joined.joined(first) is None
    assert joined.joined(second) == data


def test_unfinished_messages_are_limited():
    joined = PartAssembly()
    for _ in range(10 * MOST_OPEN):
        joined.joined(cut(os.urandom(PIECE + 1))[0])
    assert len(joined._open) <= MOST_OPEN


@pytest.mark.parametrize(
    "frame", [b"", b"p", b"x123", b"p" + b"\xff" * 40, b"p" + bytes(16) + b"\0\0\0\5\0\0\0\1x"]
)
def test_a_frame_that_is_none_is_dropped(frame: bytes):
    assert PartAssembly().joined(frame) is None


def test_a_worker_opens_only_what_its_owner_signed(tmp_path: Path):
    owner, other = Signer.load(tmp_path / "owner.key"), Signer.load(None)
    pinned = Verifier(owner.public)
    assert pinned.opened(owner.signed(b"offer")) == b"offer"
    assert pinned.opened(other.signed(b"offer")) is None
    assert pinned.opened(owner.signed(b"offer")[:-1]) is None
    assert pinned.opened(b"") is None
    assert Signer.load(tmp_path / "owner.key").public == owner.public
    assert (tmp_path / "owner.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("key", ["", "abc", "x" * 44, "\ud800"])
def test_a_text_that_is_not_a_key_is_refused(key: str):
    with pytest.raises(InvalidInput, match="is not the key of an owner"):
        Verifier(key)


def test_the_journal_survives_and_holds_no_secret(tmp_path: Path):
    journal = ClaimJournal(tmp_path / "journal")
    assert journal.open() == {}
    granted = _granted("../../n", env={"A": "hunter2"}, stdin=b"hunter2")
    journal.keep(JournalEntry(without_secrets(granted)))
    home = journal.home
    journal.close()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()] == []
    (tmp_path / "journal" / "cut.json").write_bytes(b'{"granted":')  # which no crash of ours leaves
    again = ClaimJournal(tmp_path / "journal")
    (entry,) = again.open().values()
    assert again.home == home
    assert entry.granted.nonce == "../../n"
    assert not entry.granted.task.work.faithful  # it cannot be started again: its stdin is not kept
    again.drop("../../n")
    again.close()
    assert [path.name for path in tmp_path.rglob("*.json")] == ["cut.json"]


def test_a_worker_whose_id_was_cut_by_a_crash_has_a_new_one(tmp_path: Path):
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "id").touch()
    journal = ClaimJournal(tmp_path / "journal")
    journal.open()
    journal.close()
    again = ClaimJournal(tmp_path / "journal")
    again.open()
    again.close()
    assert again.home == journal.home != ""


def test_two_who_make_the_key_of_one_owner_have_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The daemon, and a command that asks for its address, may both be the first."""
    other = Signer.load(tmp_path / "other.key")
    made = atomic_file.make_file

    def late(path: Path, data: bytes) -> None:
        (tmp_path / "other.key").rename(path)
        made(path, data)

    monkeypatch.setattr("meantime.workers.owner_key.make_file", late)
    assert Signer.load(tmp_path / "owner.key").public == other.public


def test_nobody_else_can_look_into_the_folders_that_the_journal_makes(tmp_path: Path):
    """Its parent, the worker's home, too: mkdir gives its mode to the last folder only."""
    before = os.umask(0)
    try:
        journal = ClaimJournal(tmp_path / "home" / "journal")
        journal.open()
        journal.close()
    finally:
        os.umask(before)
    assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_dir()} == {
        "home": 0o700,
        "journal": 0o700,
    }


@pytest.mark.parametrize("place", ["", "gpu", "pool:", "pool:a b", "pool:../x", "POOL:a", 5, None])
def test_a_text_that_is_not_a_place_is_refused(place: object):
    with pytest.raises(InvalidInput, match="is not a place"):
        check_place(place)


def test_the_longest_pattern_that_fits_decides():
    places = {"call": "pool:a", "call:train:*": "pool:gpu", "call:train:tiny*": "here"}
    assert place_of(Work("call", "other:f"), places) == "pool:a"
    assert place_of(Work("call", "train:big"), places) == "pool:gpu"
    assert place_of(Work("call", "train:tiny_one"), places) == "here"
    assert place_of(Work("shell", "ls"), places) == "here"
