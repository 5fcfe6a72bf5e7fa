"""What a close does to commands, and what does not outlive its owner."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Completed, Meantime, Settings, Shell
from meantime.runners.shell import runner
from meantime.runners.shell.launcher import Launcher

from .owners import QUICK, Owner, let_go, released, wait_for
from .saying import lives, said

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


async def test_a_graceful_close_leaves_it_running(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path))
    owner.close()
    await wait_for(tmp_path / "started", "\n")
    await asyncio.to_thread(let_go, tmp_path)

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert task.status == "completed"
    assert len((tmp_path / "started").read_text().split()) == 1


async def test_a_close_does_not_wait_for_a_launcher_that_hangs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def hangs(self: Launcher, order: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(runner, "UNANSWERED", 0.2)
    with monkeypatch.context() as hanging:
        hanging.setattr(Launcher, "launch", hangs)
        async with asyncio.timeout(LIMIT), Meantime.open(path, settings=QUICK) as mt:
            handle = await mt.thread("conv-1").start(Shell(f"echo ran >> {tmp_path}/ran"))
    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(handle.id, timeout=LIMIT)
        assert task.status == "completed"
    assert (tmp_path / "ran").read_text() == "ran\n"


async def test_a_close_can_stop_it_instead(path: Path, tmp_path: Path):
    stopping = Settings(stop_grace=0.5, on_close="stop")
    async with Meantime.open(path, settings=stopping) as mt:
        handle = await mt.thread("conv-1").start(Shell(released(tmp_path)))
        await said(handle, "before")
    pid = int((tmp_path / "started").read_text())
    assert not lives(pid)
    async with Meantime.open(path) as mt:
        assert (await mt.get(handle.id)).status == "cancelled"


async def test_a_ledger_that_forgets_takes_its_commands_with_it(tmp_path: Path):
    owner = Owner(Path(":memory:"))
    owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    pid = int((tmp_path / "started").read_text())
    await until_async(lambda: not lives(pid), "the command has ended")


async def test_a_call_that_somebody_waited_for_ends_with_its_owner(owner: Owner, path: Path, tmp_path: Path):
    """It is no task: nobody could be told of it."""
    assert owner.ask(call={"command": released(tmp_path)}) == "calling"
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    pid = int((tmp_path / "started").read_text())
    await until_async(lambda: not lives(pid), "the command has ended")
    async with Meantime.open(path) as mt:
        assert await mt.list() == []


async def test_a_call_that_is_a_task_before_its_shim_is_there_outlives_us(path: Path, tmp_path: Path):
    async with Meantime.open(path, settings=QUICK) as mt:
        answer = await mt.thread("conv-1").call(Shell(released(tmp_path)), threshold=0.001)
        assert answer.task is not None
        await wait_for(tmp_path / "started", "\n")
    async with Meantime.open(path, settings=QUICK) as mt:
        assert (await mt.get(answer.task.id)).status == "running"
        await asyncio.to_thread(let_go, tmp_path)
        [task] = await mt.thread("conv-1").wait(answer.task.id, timeout=LIMIT)
        assert isinstance(task.outcome, Completed)
