"""Backup and restore: one file that holds everything, is checked, and harms nothing where it is restored."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import os
import shutil
import sqlite3
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Call, InvalidInput, LedgerBusy, LedgerDamaged, Lost, Meantime, Settings, Shell
from meantime.app import backup_archive, ledger_backup
from meantime.app.backup_archive import BadArchive
from meantime.app.ledger_audit import audit
from meantime.app.ledger_backup import back_up
from meantime.app.ledger_restore import restore

pytestmark = pytest.mark.anyio
LONG = "x" * 60_000
QUICK = Settings(stop_grace=0.5, on_close="stop")


def say(words: str) -> str:
    return words


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "work.db"


@pytest.fixture
async def ledger(path: Path) -> Path:
    return await made(path)


async def made(path: Path) -> Path:
    """One task told, one untold, one with a long result, one command with a long output."""
    async with Meantime.open(path) as mt:
        thread = mt.thread("a")
        await (await thread.start(Call(say, "told"), id="told")).wait(LIMIT)
        async with thread.turn() as turn:
            await turn.ack()
        await (await thread.start(Call(say, "untold"), id="untold")).wait(LIMIT)
        await (await thread.start(Call(say, LONG), id="long")).wait(LIMIT)
        output = Shell("head -c 60000 /dev/zero | tr '\\0' y; echo problem >&2")
        await (await thread.start(output, id="command")).wait(LIMIT)
    return path


def beside(path: Path) -> list[str]:
    return sorted(os.listdir(path.parent))


async def check_restored(ledger: Path) -> None:
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("a")
        states = {notice.task_id: str(notice.state) for notice in await mt.notices("unread", "told")}
        assert states == {"told": "told", "untold": "unread", "long": "unread", "command": "unread"}
        assert await thread.result("long") == LONG
        assert (await mt.log("command").read(stream="stderr")).text == "problem\n"
        assert len(await thread.result("command")) == 60_000 + len("problem\n")
    assert audit(ledger, owned=False, now=0).is_clean


async def test_all_of_a_ledger_comes_back(ledger: Path, tmp_path: Path):
    file, new = tmp_path / "all.tar", tmp_path / "new" / "other.db"
    account = back_up(ledger, file)
    assert (account.tasks, account.active, account.unread, account.findings) == (4, 0, 3, ())
    assert file.stat().st_mode & 0o777 == 0o600
    shutil.rmtree(ledger.parent)
    assert restore(file, new, is_home=False) == account
    await check_restored(new)


async def test_a_ledger_that_is_open_is_backed_up_as_it_is(path: Path, ledger: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        running = await mt.thread("a").start(Shell("echo so far; sleep 600"), id="running")
        queued = [await mt.thread("a").start(Shell("sleep 600")) for _ in range(20)][-1]
        async for chunk in running.log.follow():
            if "so far" in chunk.text:
                break
        async with mt.thread("a").turn() as turn:
            assert len(turn.notices) == 3
            account = back_up(path, tmp_path / "all.tar")
            await turn.ack()
        assert (account.tasks, account.active, account.unread) == (25, 21, 3)

        new = tmp_path / "new" / "work.db"
        restore(tmp_path / "all.tar", new, is_home=False)
        async with Meantime.open(new, settings=QUICK) as other:
            [task] = await other.thread("a").wait("running", timeout=LIMIT)
            assert isinstance(task.outcome, Lost)
            assert (task.outcome.partial, str(path) in task.outcome.reason) == ("so far\n", True)
            assert (await other.get(queued.id)).status == "lost"
            await other.thread("a").wait(timeout=LIMIT)
            # What was leased and not acknowledged is told again; and what was lost, once.
            async with other.thread("a").turn() as turn:
                assert {"untold", "long", "command", "running"} <= {one.task_id for one in turn.notices}
                await turn.ack()
        async with Meantime.open(new, settings=QUICK) as other:
            assert not any(one.task_id == "running" for one in await other.notices("unread"))
        assert (await mt.get("running")).status == "running"


async def test_payloads_that_are_purged_meanwhile_are_in_it(
    path: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The copy of the database names them: so they are held before it is made."""
    copy = ledger_backup._copy_database

    def purging(source: Path, into: Path) -> None:
        copy(source, into)
        for file in (*Path(f"{source}.files").iterdir(), *Path(f"{source}.commands").iterdir()):
            file.unlink()

    monkeypatch.setattr(ledger_backup, "_copy_database", purging)
    account = back_up(ledger, tmp_path / "all.tar")
    assert account.findings == ()
    restore(tmp_path / "all.tar", tmp_path / "new" / "work.db", is_home=False)
    await check_restored(tmp_path / "new" / "work.db")


async def test_a_file_system_without_hard_links_will_do(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def no_links(*args: Any, **kwargs: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    back_up(ledger, tmp_path / "all.tar")
    with pytest.raises(InvalidInput, match="exists already"):
        back_up(ledger, tmp_path / "all.tar")
    restore(tmp_path / "all.tar", tmp_path / "new" / "work.db", is_home=False)
    await check_restored(tmp_path / "new" / "work.db")


async def test_a_file_is_overwritten_only_when_told(ledger: Path, tmp_path: Path):
    file = tmp_path / "all.tar"
    file.write_text("precious")
    with pytest.raises(InvalidInput, match="exists already"):
        back_up(ledger, file)
    assert file.read_text() == "precious"
    back_up(ledger, file, overwrite=True)
    assert backup_archive.read(file).format == backup_archive.FORMAT
    with pytest.raises(InvalidInput, match="is a folder"):
        back_up(ledger, tmp_path)
    with pytest.raises(InvalidInput, match="no folder"):
        back_up(ledger, tmp_path / "none" / "all.tar")


async def test_a_backup_that_fails_leaves_nothing(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before, folder = beside(ledger), beside(tmp_path / "any")

    def full(stage: Path, head: object, to: Any) -> None:
        to.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup_archive, "write", full)
    with pytest.raises(OSError, match="No space"):
        back_up(ledger, tmp_path / "all.tar")
    assert [name for name in beside(ledger) if not name.endswith(("-wal", "-shm"))] == before
    assert beside(tmp_path / "any") == folder


async def test_what_a_killed_backup_left_is_removed_by_the_next(ledger: Path, tmp_path: Path):
    left = Path(f"{ledger}.backup-0123")
    left.mkdir()
    (left / "ledger.db").write_text("half")
    live = Path(f"{ledger}.backup-4567")
    live.mkdir()
    with ledger_backup.held(live):
        back_up(ledger, tmp_path / "all.tar")
        assert live.exists()
    assert not left.exists()


async def test_a_damaged_ledger_is_not_called_a_backup(ledger: Path, tmp_path: Path):
    data = bytearray(ledger.read_bytes())
    with sqlite3.connect(ledger) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'notices'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data[(page - 1) * size : page * size] = b"\xff" * size
    ledger.write_bytes(data)
    with pytest.raises(LedgerDamaged):
        back_up(ledger, tmp_path / "all.tar")
    assert not (tmp_path / "all.tar").exists()


async def test_a_payload_that_is_gone_is_found_by_the_audit_and_said(ledger: Path, tmp_path: Path):
    [payload] = Path(f"{ledger}.files").iterdir()
    payload.unlink()
    found = audit(ledger, owned=False, now=0)
    assert not found.is_clean
    assert [finding.what for finding in found.findings if finding.wrong] == ["1 × a payload that is gone"]
    account = back_up(ledger, tmp_path / "all.tar")
    assert [finding.what for finding in account.findings] == ["1 × a payload that is gone"]


async def test_a_place_that_is_in_use_or_not_empty_is_refused(ledger: Path, tmp_path: Path):
    file = tmp_path / "all.tar"
    back_up(ledger, file)
    before = beside(ledger)
    with pytest.raises(InvalidInput, match=r"There is a ledger in .* already: work\.db") as refused:
        restore(file, ledger, is_home=False)
    assert "mv " in refused.value.hint
    assert beside(ledger) == before
    async with Meantime.open(ledger):
        with pytest.raises(LedgerBusy) as busy:
            restore(file, ledger, is_home=False)
    assert "meantime down" in busy.value.hint

    strange = tmp_path / "strange"
    strange.mkdir()
    (strange / "letter.txt").write_text("Dear …")
    with pytest.raises(InvalidInput, match=r"not empty: letter\.txt"):
        restore(file, strange / "ledger.db", is_home=True)
    assert os.listdir(strange) == ["letter.txt"]
    with pytest.raises(InvalidInput, match="no file"):
        restore(tmp_path / "none.tar", tmp_path / "new.db", is_home=False)


@pytest.mark.breadth
async def test_neither_side_takes_a_file_into_memory(ledger: Path, tmp_path: Path):
    size = 64 << 20
    Path(f"{ledger}.files/large.txt").touch()
    os.truncate(f"{ledger}.files/large.txt", size)
    for number in range(2_000):
        Path(f"{ledger}.files/{number}.txt").touch()
    tracemalloc.start()
    try:
        back_up(ledger, tmp_path / "all.tar")
        restore(tmp_path / "all.tar", tmp_path / "new.db", is_home=False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert (tmp_path / "new.db.files" / "large.txt").stat().st_size == size


# -- archives of strangers


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    back_up(asyncio.run(made(folder / "work.db")), folder / "all.tar")
    return folder / "all.tar"


@pytest.fixture
def file(sound: Path, tmp_path: Path) -> Path:
    """A sound archive, to be spoiled."""
    return Path(shutil.copy(sound, tmp_path))


def packed(file: Path, change: Callable[[list[tuple[tarfile.TarInfo, bytes]]], None]) -> None:
    """The same archive with other members; its checksums fit."""
    with tarfile.open(file) as tar:
        members = [(one, stream.read() if (stream := tar.extractfile(one)) else b"") for one in tar]
    change(members)
    lines = [f"{hashlib.sha256(data).hexdigest()}  {one.name}\n" for one, data in members[:-1]]
    members[-1] = (members[-1][0], "".join(lines).encode())
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as tar:
        for one, data in members:
            one.size = len(data)
            tar.addfile(one, io.BytesIO(data))


def plain(name: str) -> tarfile.TarInfo:
    return tarfile.TarInfo(name)


def special(kind: bytes, to: str = "") -> tarfile.TarInfo:
    one = tarfile.TarInfo("ledger.db.files/special.txt")
    one.type, one.linkname = kind, to
    return one


STRANGE = {
    "a way up": plain("ledger.db.files/../../escaped"),
    "a whole path": plain("/tmp/escaped"),
    "a name of its own": plain("ledger.db.lock"),
    "a folder of its own": plain("bin/meantime"),
    "only a folder": plain("ledger.db.files"),
    "a dot": plain("ledger.db.files/./escaped"),
    "nothing between slashes": plain("ledger.db.files//escaped"),
    "too deep": plain("ledger.db.files/" + "a/" * 20 + "b"),
    "too long": plain("ledger.db.files/" + "a" * 2_000),
    "the ledger twice": plain("ledger.db"),
    "a symbolic link": special(tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": special(tarfile.LNKTYPE, "ledger.db"),
    "a device": special(tarfile.CHRTYPE),
    "a pipe": special(tarfile.FIFOTYPE),
    "a folder": special(tarfile.DIRTYPE),
    "a sparse file": special(tarfile.GNUTYPE_SPARSE),
}


@pytest.mark.parametrize("what", STRANGE)
def test_nothing_strange_is_taken_from_an_archive(file: Path, tmp_path: Path, what: str):
    place = tmp_path / "deep" / "place"
    packed(file, lambda members: members.insert(-1, (STRANGE[what], b"")))
    with pytest.raises(BadArchive):
        restore(file, place / "work.db", is_home=False)
    assert os.listdir(place) == []
    assert os.listdir(tmp_path / "deep") == ["place"]


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    at = data.index(b"y" * 1000)
    return data[:at] + b"z" + data[at + 1 :]


def huge_header(data: bytes) -> bytes:
    """A header that says that it is 64 GB long."""
    one = tarfile.TarInfo("././@PaxHeader")
    one.type, one.size = tarfile.XHDTYPE, 64 << 30
    return one.tobuf(tarfile.GNU_FORMAT) + data


def of_the_future(data: bytes) -> bytes:
    return data.replace(b'"format":1', b'"format":9', 1)


SPOILED = [cut, flipped, huge_header, of_the_future, lambda data: b"", lambda data: b"no"]


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_spoiled_archive_is_refused_whole(file: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]):
    place = tmp_path / "place"
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(BadArchive):
        restore(file, place / "work.db", is_home=False)
    assert os.listdir(place) == []


def test_an_archive_without_a_ledger_is_none(file: Path, tmp_path: Path):
    def without(members: list[Any]) -> None:
        members[:] = [one for one in members if one[0].name != "ledger.db"]

    packed(file, without)
    with pytest.raises(BadArchive, match="not a backup"):
        restore(file, tmp_path / "place" / "work.db", is_home=False)
