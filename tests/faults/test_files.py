"""The ledger's files: owned by a sleeping process, damaged, too new, read-only, deleted under us."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from meantime import (
    Call,
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerTooNew,
    Meantime,
    MeantimeError,
)
from meantime.stores.sqlite.reader_pool import Readers

from . import kills, strace, works
from .judge import judge, read_facts
from .kills import transcripts

pytestmark = pytest.mark.faults

TASKS = 60  # enough for several pages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    works.open_ledger(tmp_path)
    return tmp_path


async def fill(folder: Path) -> None:
    """A ledger with endings that were told, and endings that were not."""
    async with Meantime.open(folder / "ledger.db") as meantime:
        home = meantime.thread("a")
        for number in range(TASKS):
            id = f"a-{number}.1"
            works.say("attempt", "a", id)
            handle = await home.start(Call(works.gated, id, "a"), id=f"a-{number}", description="x" * 300)
            works.say("accepted", "a", id)
            works.say("ended", "a", id, (await handle.wait()).status)
            if number == TASKS // 2:
                await tell(meantime)


async def tell(meantime: Meantime) -> list[str]:
    home = meantime.thread("a")
    async with home.turn() as turn:
        transcript = home.transcript
        for notice in turn.notices:
            transcript.add(notice.id, f"{notice.id} {notice.task.status}")
        if turn.notices:
            for id in (await turn.ack(transcript=transcript)).told:
                works.say("acked", "a", id)
        return [notice.id for notice in turn.notices]


async def try_open(path: Path, **options: Any) -> None:
    async with Meantime.open(path, **options):
        return


def test_a_stopped_owner_still_owns(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        strace.command("load", tmp_path), cwd=strace.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        ledger = tmp_path / "ledger.jsonl"
        until(lambda: owner.poll() is not None or read_facts(ledger), "it has opened its ledger and works")
        os.kill(owner.pid, signal.SIGSTOP)
        with pytest.raises(LedgerBusy, match=f"process {owner.pid} "):
            asyncio.run(try_open(tmp_path / "ledger.db"))
    finally:
        owner.kill()
        owner.communicate()
    assert kills.recover(tmp_path).clean


def garbage_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(100))


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def flip_a_page(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(os.urandom(4096))


def scramble(path: Path) -> None:
    """All but the first page, which holds the schema."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))


CASES = [
    *((damage, False) for damage in (garbage_header, cut_in_half, flip_a_page, scramble)),
    *((damage, True) for damage in (garbage_header, cut_in_half, scramble)),  # one page may not be met
]


@pytest.mark.parametrize(
    ("damage", "clean"), CASES, ids=[f"{d.__name__}-{'closed' if c else 'crashed'}" for d, c in CASES]
)
def test_a_damaged_ledger_is_set_aside_and_salvaged(folder: Path, damage: Any, clean: bool) -> None:
    asyncio.run(fill(folder))
    path = folder / "ledger.db"
    damage(path)
    if not clean:
        (folder / "ledger.db.lock").write_text('{"clean": false}')
    with pytest.raises(LedgerDamaged) as first:
        asyncio.run(use(path))
    with pytest.raises(LedgerDamaged) as second:
        asyncio.run(use(path))
    (aside,) = folder.glob("ledger.db.damaged-*")
    assert (aside / "ledger.db").stat().st_size > 4096
    assert str(aside) in str(first.value)
    assert str(aside) in str(second.value)
    asyncio.run(go_on(path))
    verdict = judge(
        [fact for fact in read_facts(folder / "ledger.jsonl") if fact.what != "accepted"], own(folder)
    )
    assert verdict.clean, str(verdict)  # some may be lost with their pages; nothing is told twice
    asyncio.run(try_open(path))


async def use(path: Path) -> None:
    """Opens it and looks at everything: damage must be named wherever it is met."""
    async with Meantime.open(path) as meantime:
        await meantime.list(limit=1_000)
        await meantime.notices("told", "unread")
        await tell(meantime)


async def go_on(path: Path) -> None:
    async with Meantime.open(path, salvage=True) as meantime:
        while await tell(meantime):
            pass
        handle = await meantime.thread("b").start(Call(works.gated, "b-1.1", "b"), id="b-1")
        assert (await handle.wait()).status == "completed"


def own(folder: Path) -> Any:
    return {name: lines for name, lines in transcripts(folder).items() if name == "a"}


def test_a_newer_ledger_is_left_as_it_is(folder: Path) -> None:
    asyncio.run(fill(folder))
    path = folder / "ledger.db"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9999")
    db.commit()
    db.close()
    before = path.read_bytes()
    with pytest.raises(LedgerTooNew, match="9999"):
        asyncio.run(try_open(path))
    with pytest.raises(LedgerTooNew):
        asyncio.run(try_open(path, salvage=True))
    assert path.read_bytes() == before
    assert not list(folder.glob("*.damaged-*"))


@pytest.fixture
def read_only(folder: Path) -> Iterator[Path]:
    """Permissions do not bind root: `chattr +i` does, where the file system has it."""
    asyncio.run(fill(folder))
    path = folder / "ledger.db"
    if os.getuid() != 0:
        path.chmod(0o400)
        yield path
        return
    made = subprocess.run(["chattr", "+i", str(path)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"chattr +i does not work here: {made.stderr.strip()}")
    yield path
    subprocess.run(["chattr", "-i", str(path)], check=True)


def test_a_read_only_ledger_is_refused_and_left_as_it_is(read_only: Path) -> None:
    before = read_only.read_bytes()
    with pytest.raises(LedgerError):
        asyncio.run(try_open(read_only))
    assert read_only.read_bytes() == before
    assert not list(read_only.parent.glob("*.damaged-*"))


def test_a_ledger_that_is_deleted_under_us_accepts_nothing_more(folder: Path) -> None:
    """What went into a file without a name would be lost with this process: it is refused."""

    async def play() -> None:
        async with Meantime.open(folder / "ledger.db") as meantime:
            home = meantime.thread("a")
            await (await home.start(Call(works.gated, "a-1.1", "a"))).wait()
            for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
                (folder / name).unlink()
            with pytest.raises(MeantimeError):
                await home.start(Call(works.gated, "a-2.1", "a"))

    asyncio.run(asyncio.wait_for(play(), LIMIT))


@pytest.mark.faults
def test_a_salvage_that_is_killed_can_be_done_again(folder: Path, tmp_path_factory: Any) -> None:
    """The set-aside ledger is not forgotten because a half-made one lies in its place."""
    if strace.missing():
        pytest.skip(strace.missing())
    asyncio.run(fill(folder))
    flip_a_page(folder / "ledger.db")
    (folder / "ledger.db.lock").write_text('{"clean": false}')
    with pytest.raises(LedgerDamaged):
        asyncio.run(try_open(folder / "ledger.db"))
    whole = salvaged(shutil.copytree(folder, tmp_path_factory.mktemp("whole") / "x"))
    for number in range(1, 12, 2):
        copy = shutil.copytree(folder, tmp_path_factory.mktemp("cut") / "x")
        inject = f"inject=fdatasync:signal=KILL:when={number}"
        strace.run("salvage", copy, "-o", str(copy / "trace"), "-e", "trace=fdatasync", "-e", inject)
        assert salvaged(copy) == whole, f"killed at fdatasync #{number}"


def salvaged(folder: Path) -> int:
    async def count() -> int:
        async with Meantime.open(folder / "ledger.db", salvage=True) as meantime:
            return len(await meantime.list(limit=1_000))

    return asyncio.run(count())


@pytest.mark.anyio
async def test_a_disk_that_fails_while_a_ledger_is_opened_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And holds nothing: the next try has it."""

    def fails(self: Readers) -> sqlite3.Connection:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(Readers, "connect", fails)
        with pytest.raises(LedgerError):
            await Meantime.open(tmp_path / "work.db")
    async with Meantime.open(tmp_path / "work.db") as mt:
        assert await mt.stats()
