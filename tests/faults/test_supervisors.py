"""The zygote and its spare shim are killed while commands run: those go on, and the next ones begin."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Meantime, Settings, Shell
from meantime.runners.shell import launcher, shim_event_pipe

from .adoption import clear, words
from .shell_plants import in_the_shims
from .strace import ROOT
from .trees import ZYGOTE, stat

pytestmark = pytest.mark.faults


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

    def killed() -> bool:
        found = supervisors(folder)
        zygotes = [pid for pid in found if pid in found.values()]
        busy = {
            int(fields[1]) for pid in filter(str.isdigit, os.listdir("/proc")) if (fields := stat(int(pid)))
        }
        spares = [pid for pid, parent in found.items() if parent in zygotes and pid not in busy]
        if not zygotes or len(spares) != 1:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill((zygotes if role == "zygote" else spares)[0], signal.SIGKILL)
            return True
        return False

    await until_async(killed, f"there is a {role}", lambda: supervisors(folder))


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
                statuses = [(await one.wait(timeout=LIMIT)).status for one in short]
                assert statuses == ["completed", "failed"]
            (folder / "gate").touch()
            assert getattr((await long.wait(timeout=LIMIT)).outcome, "exit_code", None) == 7

    asyncio.run(asyncio.wait_for(play(), 3 * LIMIT))


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
            assert (await (await thread.start(Shell("true"))).wait(timeout=LIMIT)).status == "completed"
            (folder / "gate").touch()
            assert getattr((await long.wait(timeout=LIMIT)).outcome, "exit_code", None) == 7

    asyncio.run(asyncio.wait_for(play(), 3 * LIMIT))


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
                assert getattr((await handle.wait(timeout=LIMIT)).outcome, "exit_code", None) == code

    asyncio.run(asyncio.wait_for(play(), 3 * LIMIT))


def test_ledgers_with_the_same_task_do_not_hunt_each_other(folder: Path) -> None:
    """A killed shim has its own command hunted down, not another ledger's that has the same id."""

    async def play() -> None:
        async with Meantime.open(folder / "one.db") as one, Meantime.open(folder / "other.db") as other:
            script = f"echo $$ >>{folder}/up; until [ -e {folder}/gate ]; do sleep 0.02; done; exit 7"
            for meantime in (one, other):
                await meantime.thread("t").start(Shell(script), id="same")
            up = folder / "up"
            await until_async(lambda: up.exists() and up.read_bytes().count(b"\n") == 2, "both are up")
            parents = {int(stat(int(pid))[1]) for pid in up.read_text().split()}
            (shim,) = [pid for pid in parents if b"one.db" in words(pid)]
            os.kill(shim, signal.SIGKILL)
            (lost,) = await one.thread("t").wait("same", timeout=LIMIT)
            assert lost.status == "lost"
            (folder / "gate").touch()
            (ended,) = await other.thread("t").wait("same", timeout=LIMIT)
            assert getattr(ended.outcome, "exit_code", None) == 7

    asyncio.run(play())


PATIENT = Settings(stop_grace=2 * LIMIT, stop_deadline=3 * LIMIT)  # longer than the test waits
OWNER = f"""
import asyncio, os, sys
from meantime import Meantime, Settings, Shell
from meantime.runners.shell import shim_watch
from tests.waiting import until_async
shim_watch.tell = lambda *message: None
async def main(folder):
    settings = Settings(stop_grace={PATIENT.stop_grace}, stop_deadline={PATIENT.stop_deadline})
    meantime = await Meantime.open(folder + "/ledger.db", settings=settings)
    thread = meantime.thread("t")
    await thread.start(Shell(f"echo up >{{folder}}/up; while :; do sleep 0.02; done"), id="x")
    await until_async(lambda: os.path.exists(folder + "/up"), "it is up")
    await thread.cancel("x")
    print("cancelled", flush=True)
    await asyncio.Event().wait()
asyncio.run(main(sys.argv[1]))
"""


def test_a_cancel_is_passed_on_at_once_by_the_next_owner(folder: Path) -> None:
    """The first was killed before it could: the second must not wait for the grace to be over."""

    async def play() -> None:
        words = [sys.executable, "-c", OWNER, str(folder)]
        owner = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        try:
            assert owner.stdout is not None
            assert await owner.stdout.readline()
        finally:
            owner.kill()
            await owner.wait()
        async with Meantime.open(folder / "ledger.db", settings=PATIENT) as meantime:
            (task,) = await meantime.thread("t").wait("x", timeout=LIMIT)
            assert task.status == "cancelled"

    asyncio.run(play())


KILLED_WHILE_IT_BEGINS = """
import os, signal
from meantime.runners.shell.shim import shim
spawn = shim.Shim._spawn
def killed(self):
    spawn(self)
    self._pass_on()
    os.kill(os.getpid(), signal.SIGKILL)
shim.Shim._spawn = killed
"""


def test_a_command_whose_shim_was_killed_before_it_could_say_that_it_runs_is_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next order waits already, so its zygote goes on, and nobody says that anything is wrong."""
    monkeypatch.setattr(launcher, "CODE", in_the_shims(KILLED_WHILE_IT_BEGINS))
    monkeypatch.setattr(shim_event_pipe, "RECONCILE", 0.1)

    async def play() -> None:
        async with Meantime.open(folder / "ledger.db") as meantime:
            handle = await meantime.thread("t").start(Shell("while :; do sleep 0.02; done"))
            assert (await handle.wait(timeout=LIMIT)).status == "lost"

    asyncio.run(asyncio.wait_for(play(), 3 * LIMIT))
