"""A program under a guard, which ends it with all that it has started."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until, until_async

from meantime.integrations import guarded_process
from meantime.integrations.guarded_process import GuardedProcess

pytestmark = pytest.mark.processes

# Ends by a signal only, for which its guard must live until it sends one.
STAYS = "import os, signal; print(os.getpid(), flush=True); signal.pause()"


async def started() -> tuple[GuardedProcess, int]:
    """With the pid of the program itself."""
    program = [sys.executable, "-c", STAYS]
    made = await GuardedProcess.start(program, dict(os.environ), None, lambda _: None)
    return made, int(await asyncio.wait_for(made.stdout.readline(), LIMIT))


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


@pytest.mark.anyio
async def test_a_cancelled_close_leaves_the_guard_to_end_the_program():
    process, pid = await started()
    closing = asyncio.ensure_future(process.close())
    await asyncio.sleep(0)  # it has let go of the lifeline, and waits
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not has_ended(process.pid) or has_ended(pid), "the guard goes on"
    await until_async(lambda: has_ended(pid), "the program has ended")


def test_a_loop_that_ends_during_a_close_leaves_the_guard_to_end_the_program():
    async def closes_in_vain() -> int:
        process, pid = await started()
        running.append(asyncio.ensure_future(process.close()))
        await asyncio.sleep(0)
        return pid

    running: list[asyncio.Future[None]] = []
    pid = asyncio.run(closes_in_vain())
    running.clear()
    gc.collect()  # asyncio's own objects are gone, too
    until(lambda: has_ended(pid), "the program has ended")


@pytest.mark.anyio
async def test_a_close_waits_for_the_end_of_the_program(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guarded_process, "GOES", LIMIT)
    process, pid = await started()
    await process.close()
    assert process.returncode is not None
    assert has_ended(pid)
