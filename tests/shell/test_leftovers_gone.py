"""A cancel ends what an ended command has left running: whatever that has shed, and however it forks."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, pause_async, stays_async, until_async

from meantime import Meantime, Refused, Settings, Shell, Task
from meantime.runners.shell import orphan_processes, provenance
from meantime.runners.shell import runner as shell_runner
from meantime.runners.shell.shim import process_tree

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

# Each says its pid in a file, and sheds what it could be known by: environment, pipes, session, parent.
BARE = "env -i sleep 302 & echo $! > pid"
MUTE = "env -i setsid sleep 303 </dev/null >/dev/null 2>&1 & echo $! > pid"
# Nobody who looks at a pid finds the next one: each lives for a few milliseconds, and its child goes on.
CHAIN = """
import os, sys, time
pause = float(sys.argv[1])
os.setsid()
for fd in range(256):
    try: os.close(fd)
    except OSError: pass
until = time.monotonic() + 120
while time.monotonic() < until:
    if os.fork(): os._exit(0)
    time.sleep(pause)
    said = os.open("pid.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(said, str(os.getpid()).encode()); os.close(said)
    os.rename("pid.new", "pid")
"""


def chain(pause: float) -> str:
    return f"env -i {sys.executable} -S -c '{CHAIN}' {pause} </dev/null >/dev/null 2>&1 &"


async def ended(mt: Meantime, folder: Path, line: str) -> Task:
    handle = await mt.thread("conv-1").start(Shell(f"{line}\nexit 0", cwd=folder), id="one")
    task = await handle.wait(LIMIT)
    assert task.status == "completed"
    await until_async((folder / "pid").exists, "its pid is there")
    return task


def is_there(pid: int) -> bool:
    return process_tree.facts(pid) is not None


def parent(pid: int) -> int:
    found = process_tree.facts(pid)
    return found[0] if found is not None else 0


def lives(folder: Path) -> bool:
    """Whether a process is in this folder. A chain may move on while we look."""
    return any(_is_in(folder, entry) for entry in os.listdir("/proc") if entry.isdigit())


async def nothing_lives(folder: Path) -> None:
    await stays_async(lambda: not lives(folder), "no process of the command is there")


def _is_in(folder: Path, pid: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(folder) and process_tree.facts(int(pid)) is not None
    except OSError:
        return False


SHEDS = pytest.mark.linux_only("it sheds environment, session and parent, and only a sub-reaper keeps it")
LINES = [
    pytest.param(BARE, id="bare"),
    pytest.param(MUTE, id="mute", marks=SHEDS),
    *(pytest.param(chain(ms / 1000), id=f"{ms} ms", marks=SHEDS) for ms in (2, 20, 100)),
]


@pytest.mark.behaviour("P8")
@pytest.mark.parametrize("line", LINES)
async def test_a_cancel_ends_leftovers_in_a_ledgers_first_life(tmp_path: Path, line: str):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await ended(mt, tmp_path, line)
        await until_async(lambda: lives(tmp_path), "its leftover is there")
        answer = await mt.cancel("one")
    assert answer.killed > 0
    await nothing_lives(tmp_path)


@pytest.mark.behaviour("P8")
@pytest.mark.parametrize("line", LINES)
async def test_a_cancel_ends_leftovers_after_a_reopen(tmp_path: Path, line: str):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await ended(mt, tmp_path, line)
    async with Meantime.open(tmp_path / "work.db") as mt:
        answer = await mt.cancel("one")
    assert answer.killed > 0
    await nothing_lives(tmp_path)


@pytest.mark.behaviour("P8")
@pytest.mark.parametrize("line", [LINES[0], LINES[3]])
async def test_a_cancel_ends_leftovers_where_the_boot_id_is_another(
    tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch
):
    """The supervisor holds the file of this command: so it lives, whatever the machine says of itself."""
    async with Meantime.open(tmp_path / "work.db") as mt:
        await ended(mt, tmp_path, line)
        monkeypatch.setattr(provenance, "this_boot", lambda: 7)
        await mt.cancel("one")
    await nothing_lives(tmp_path)


@pytest.mark.behaviour("P8")
@pytest.mark.linux_only("it sheds environment, session and parent, and only a sub-reaper keeps it")
async def test_when_the_supervisor_was_killed_a_leftover_is_known_by_its_pid_and_start(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await ended(mt, tmp_path, MUTE)
        leftover = int((tmp_path / "pid").read_text())
        supervisor = parent(leftover)
        os.kill(supervisor, signal.SIGKILL)
        await until_async(lambda: parent(leftover) != supervisor, "the leftover has another parent")
        answer = await mt.cancel("one")
    assert answer.killed == 1
    await nothing_lives(tmp_path)


@pytest.mark.behaviour("P8")
async def test_a_leftover_that_cannot_be_killed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await ended(mt, tmp_path, BARE)
        with monkeypatch.context() as patched:
            patched.setattr(
                orphan_processes, "kill_orphans", lambda *_, **__: orphan_processes.KillResult(2, (4711,))
            )
            with pytest.raises(Refused, match=r"1 of the processes .* cannot be killed: 4711") as problem:
                await mt.cancel("one")
            assert problem.value.code == "still_running"
        await mt.cancel("one")


@pytest.mark.behaviour("P8")
@pytest.mark.linux_only("it sheds environment, session and parent, and only a sub-reaper keeps it")
async def test_a_supervisor_leaves_when_the_last_leftover_has_ended(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await ended(mt, tmp_path, MUTE)
        leftover = int((tmp_path / "pid").read_text())
        supervisor = parent(leftover)
        assert is_there(supervisor)
        os.kill(leftover, signal.SIGKILL)
        await until_async(lambda: not is_there(supervisor), "the supervisor has left")


@pytest.mark.behaviour("P8")
async def test_a_second_stop_does_not_interrupt_the_conclusion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its supervisor was killed, and what it left is being ended, when the stop after the grace comes."""
    began, real = asyncio.Event(), orphan_processes.kill_orphans
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(shell_runner, "UNANSWERED", 0.0)

    def slow(*given: object, **more: object) -> orphan_processes.KillResult:
        loop.call_soon_threadsafe(began.set)
        over = pause_async(0.5, "the grace is over before, by the clock of the same loop")
        asyncio.run_coroutine_threadsafe(over, loop).result()
        return real(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(orphan_processes, "kill_orphans", slow)
    pid = tmp_path / "pid"
    settings = Settings(stop_grace=0.1, stop_deadline=LIMIT)
    async with Meantime.open(tmp_path / "work.db", settings=settings) as mt:
        thread = mt.thread("conv-1")
        line = "trap '' TERM; echo said; echo $PPID > pid; while :; do sleep 1; done"
        handle = await thread.start(Shell(line, cwd=tmp_path), id="one")
        await until_async(lambda: pid.exists() and pid.read_text(), "the command runs")
        await handle.cancel()
        os.kill(int(pid.read_text()), signal.SIGKILL)
        await asyncio.wait_for(began.wait(), LIMIT)
        task = await handle.wait(LIMIT)
        assert task.status == "cancelled"
        await nothing_lives(tmp_path)
        assert "said" in str(getattr(task.outcome, "partial", ""))
