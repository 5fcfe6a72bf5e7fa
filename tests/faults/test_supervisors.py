"""The zygote and its spare shim are killed while commands run: those go on, and the next ones begin."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from meantime import Meantime, Settings, Shell

from .adoption import clear, words
from .hostile import until
from .trees import ZYGOTE, stat


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    clear(tmp_path)


def supervisors(folder: Path) -> dict[int, int]:
    """With their parents."""
    pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    mine = [pid for pid in pids if ZYGOTE in (line := words(pid)) and str(folder).encode() in line]
    return {pid: int(fields[1]) for pid in mine if (fields := stat(pid))}


async def kill(folder: Path, role: str) -> None:
    """The spare is forked when the last order was taken, so it may take a moment to be there; a shim
    whose command has just ended looks like one until it is gone."""
    for _ in range(500):
        found = supervisors(folder)
        zygotes = [pid for pid in found if pid in found.values()]
        busy = {
            int(fields[1]) for pid in filter(str.isdigit, os.listdir("/proc")) if (fields := stat(int(pid)))
        }
        spares = [pid for pid, parent in found.items() if parent in zygotes and pid not in busy]
        chosen = zygotes if role == "zygote" else spares
        if zygotes and len(spares) == 1:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chosen[0], signal.SIGKILL)
                return
        await asyncio.sleep(0.01)
    raise AssertionError(f"no {role} among {found}")


@pytest.mark.parametrize("role", ["zygote", "spare"])
def test_commands_begin_and_go_on_after_their_launcher_was_killed(folder: Path, role: str) -> None:
    """The shim of the long one holds the launcher's socket open: its end must be seen all the same."""

    async def play() -> None:
        async with Meantime.open(folder / "ledger.db") as meantime:
            thread = meantime.thread("t")
            long = await thread.start(Shell(f"while [ ! -e {folder}/gate ]; do sleep 0.02; done; exit 7"))
            await (await thread.start(Shell("true"))).wait()
            for number in range(3):
                await kill(folder, role)
                short = [await thread.start(Shell(f"exit {code}")) for code in (0, number + 1)]
                statuses = [(await one.wait(timeout=10)).status for one in short]
                assert statuses == ["completed", "failed"]
            (folder / "gate").touch()
            assert getattr((await long.wait(timeout=10)).outcome, "exit_code", None) == 7

    asyncio.run(asyncio.wait_for(play(), 40))


def test_a_command_that_is_to_end_with_its_owner_goes_on_when_the_zygote_was_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shim ends it when its owner is gone; the end of a zygote must not look like that."""
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    async def play() -> None:
        async with Meantime.open(":memory:") as meantime:
            thread = meantime.thread("t")
            long = await thread.start(Shell(f"until [ -e {folder}/gate ]; do sleep 0.02; done; exit 7"))
            await kill(folder, "zygote")
            assert (await (await thread.start(Shell("true"))).wait(timeout=10)).status == "completed"
            (folder / "gate").touch()
            assert getattr((await long.wait(timeout=10)).outcome, "exit_code", None) == 7

    asyncio.run(asyncio.wait_for(play(), 30))


def test_commands_begin_after_their_folder_was_removed_and_their_zygote_killed(folder: Path) -> None:
    """The pipe in which we hear of them is another one than that of the next shims."""

    async def play() -> None:
        async with Meantime.open(folder / "ledger.db") as meantime:
            thread = meantime.thread("t")
            await (await thread.start(Shell("true"))).wait()
            shutil.rmtree(folder / "ledger.db.commands")
            await kill(folder, "zygote")
            for code in (1, 2):
                handle = await thread.start(Shell(f"sleep 0.05; exit {code}"))
                assert getattr((await handle.wait(timeout=10)).outcome, "exit_code", None) == code

    asyncio.run(asyncio.wait_for(play(), 30))


def test_ledgers_with_the_same_task_do_not_hunt_each_other(folder: Path) -> None:
    """A killed shim has its own command hunted down, not another ledger's that has the same id."""

    async def play() -> None:
        async with Meantime.open(folder / "one.db") as one, Meantime.open(folder / "other.db") as other:
            script = f"echo $$ >>{folder}/up; until [ -e {folder}/gate ]; do sleep 0.02; done; exit 7"
            for meantime in (one, other):
                await meantime.thread("t").start(Shell(script), id="same")
            up = folder / "up"
            await until(lambda: up.exists() and up.read_bytes().count(b"\n") == 2, 10, "they are not up")
            parents = {int(stat(int(pid))[1]) for pid in up.read_text().split()}
            (shim,) = [pid for pid in parents if b"one.db" in words(pid)]
            os.kill(shim, signal.SIGKILL)
            (lost,) = await one.thread("t").wait("same", timeout=10)
            assert lost.status == "lost"
            (folder / "gate").touch()
            (ended,) = await other.thread("t").wait("same", timeout=10)
            assert getattr(ended.outcome, "exit_code", None) == 7

    asyncio.run(play())


OWNER = """
import asyncio, sys
from meantime import Meantime, Settings, Shell
from meantime.runners.shell import shim_watch
shim_watch.tell = lambda *message: None
async def main(folder):
    settings = Settings(stop_grace=8.0, stop_deadline=20.0)
    meantime = await Meantime.open(folder + "/ledger.db", settings=settings)
    thread = meantime.thread("t")
    await thread.start(Shell(f"echo up >{folder}/up; while :; do sleep 0.02; done"), id="x")
    while not __import__("os").path.exists(folder + "/up"):
        await asyncio.sleep(0.01)
    await thread.cancel("x")
    print("cancelled", flush=True)
    await asyncio.sleep(60)
asyncio.run(main(sys.argv[1]))
"""


def test_a_cancel_is_passed_on_at_once_by_the_next_owner(folder: Path) -> None:
    """The first was killed before it could: the second must not wait for the grace to be over."""

    async def play() -> None:
        owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, str(folder), stdout=-1)
        try:
            assert owner.stdout is not None
            assert await owner.stdout.readline()
        finally:
            owner.kill()
            await owner.wait()
        settings = Settings(stop_grace=8.0, stop_deadline=20.0)
        async with Meantime.open(folder / "ledger.db", settings=settings) as meantime:
            began = time.monotonic()
            (task,) = await meantime.thread("t").wait("x", timeout=20)
            assert task.status == "cancelled"
            assert time.monotonic() - began < 4

    asyncio.run(play())
