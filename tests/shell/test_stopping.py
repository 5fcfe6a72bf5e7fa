"""L6–L8, L13: TERM, a grace, then KILL for everything that the command ever started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from gates import open_gate
from meantime import Cancelled, Completed, Meantime, Settings, Shell, Thread, TimedOut
from meantime.testing import FakeClock

from .saying import lives, said

pytestmark = pytest.mark.anyio
Alive = Callable[[], list[int]]

# Double-forked into sessions of their own, deaf to TERM, each with its pid in the file.
GRANDCHILDREN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        open("pids", "a").write(f"{os.getpid()}\\n")
        time.sleep(600)
open("pids", "a").write(f"{os.getpid()}\\n")
while len(open("pids").read().split()) < 4:
    time.sleep(0.01)
print("up", flush=True)
time.sleep(600)
"""


@pytest.mark.behaviour("L6")
async def test_a_cancel_sends_sigterm(ledger: str):
    script = "trap 'echo cleaning up; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    settings = Settings(stop_grace=LIMIT, stop_deadline=2 * LIMIT)
    async with Meantime.open(ledger, settings=settings) as mt:
        # Its stderr is where it tells of a killed sleep.
        handle = await mt.thread("conv-1").start(Shell(f"exec 2>/dev/null; {script}"))
        await said(handle, "ready")
        answer = await handle.cancel(reason="no longer needed", wait=True)
    assert isinstance(answer.task.outcome, Cancelled)
    said_last = str(answer.task.outcome.partial)
    assert said_last.startswith("ready\n")
    assert "cleaning up\n" in said_last
    assert answer.task.outcome.reason == "no longer needed"


async def test_stopping_well_is_stopping_too(thread: Thread):
    """A server that hears TERM and ends with 0 was cancelled, not completed."""
    handle = await thread.start(Shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"))
    await said(handle, "ready")
    assert (await handle.cancel(wait=True)).task.status == "cancelled"


@pytest.mark.behaviour("L7")
async def test_a_command_that_finished_first_is_completed(thread: Thread):
    handle = await thread.start(Shell("echo done"))
    await handle.wait(LIMIT)
    answer = await handle.cancel(wait=True)
    assert isinstance(answer.task.outcome, Completed)
    assert answer.disposition == "already_ended"


@pytest.mark.behaviour("L7")
async def test_a_command_that_finished_first_is_completed_if_its_shim_hears_both_at_once(
    thread: Thread, tmp_path: Path
):
    os.mkfifo(tmp_path / "gate")
    handle = await thread.start(Shell("echo $PPID; cat gate; echo done", cwd=tmp_path))
    await said(handle, "\n")
    shim = int((await handle.log.read()).text)
    os.kill(shim, signal.SIGSTOP)
    command = int(Path(f"/proc/{shim}/task/{shim}/children").read_text())
    await asyncio.to_thread(open_gate, tmp_path / "gate", "")
    await until_async(lambda: not lives(command), "the command has ended")
    await handle.cancel()
    os.kill(shim, signal.SIGCONT)
    assert isinstance((await handle.wait(LIMIT)).outcome, Completed)


@pytest.mark.behaviour("L6")
async def test_a_command_that_ignores_sigterm_is_killed(thread: Thread):
    handle = await thread.start(Shell("trap '' TERM; echo ready; while :; do sleep 0.05; done"))
    await said(handle, "ready")
    assert (await handle.cancel(wait=True)).task.status == "cancelled"


@pytest.mark.processes
@pytest.mark.behaviour("P8")
async def test_grandchildren_in_sessions_of_their_own_are_gone(thread: Thread, tmp_path: Path, alive: Alive):
    handle = await thread.start(Shell([sys.executable, "-c", GRANDCHILDREN], cwd=tmp_path))
    await said(handle, "up")
    assert len(alive()) == 4

    answer = await handle.cancel(wait=True)
    assert answer.task.status == "cancelled"
    assert alive() == []


async def test_one_that_has_stopped_itself_is_gone(thread: Thread, tmp_path: Path, alive: Alive):
    handle = await thread.start(Shell("echo $$ > pids; echo ready; kill -STOP $$; sleep 600", cwd=tmp_path))
    await said(handle, "ready")
    assert (await handle.cancel(wait=True)).task.status == "cancelled"
    assert alive() == []


@pytest.mark.behaviour("L13")
async def test_a_timeout_keeps_what_was_said(ledger: str, clock: FakeClock):
    async with Meantime.open(ledger, clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Shell("echo so far; sleep 600"), timeout=0.5)
        await said(handle, "so far")
        await clock.advance(0.5)
        task = await handle.wait()

        assert isinstance(task.outcome, TimedOut)
        assert (task.outcome.seconds, task.outcome.partial) == (0.5, "so far\n")
        async with thread.turn() as turn:
            assert "timed out (0.5 s)" in turn.notices[0].message().text
            await turn.ack()


async def test_a_cancel_right_after_the_start_is_heard(thread: Thread):
    handle = await thread.start(Shell("sleep 600"))
    assert (await handle.cancel(wait=True)).task.status == "cancelled"


@pytest.mark.behaviour("L8")
async def test_cancelling_twice_is_harmless(thread: Thread):
    handle = await thread.start(Shell("trap '' TERM; echo ready; sleep 600"))
    await said(handle, "ready")
    first = await handle.cancel()
    second = await handle.cancel()
    assert (first.disposition, second.disposition) == ("applied", "already_cancelling")
    assert (await handle.wait(LIMIT)).status == "cancelled"


async def test_cancel_all_takes_many_at_once(thread: Thread, tmp_path: Path, alive: Alive):
    handles = [
        await thread.start(Shell("echo $$ >> pids; echo up; sleep 600", cwd=tmp_path)) for _ in range(8)
    ]
    for handle in handles:
        await said(handle, "up")
    assert len(alive()) == 8
    await thread.cancel_all()
    assert {task.status for task in await thread.wait(*handles, timeout=LIMIT)} == {"cancelled"}
    assert alive() == []


@pytest.mark.processes
@pytest.mark.behaviour("P8")
async def test_processes_orphaned_by_sigterm_are_gone_too(thread: Thread):
    """Its parent ends just while we look for what is left: it must not be overlooked."""
    for _ in range(4):
        script = "(trap '' TERM; echo up; exec sleep 600) & wait"
        handles = [await thread.start(Shell(script)) for _ in range(8)]
        for handle in handles:
            await said(handle, "up")
        await thread.cancel_all()
        for task in await thread.wait(*handles, timeout=LIMIT):
            assert isinstance(task.outcome, Cancelled)
            assert task.outcome.emitted_vars == {}
