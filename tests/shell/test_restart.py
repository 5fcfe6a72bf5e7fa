"""P4, L27: commands outlive us. The owner is killed for real, and another one opens the ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Completed, Failed, Lost, Meantime, Settings, Shell, TimedOut
from meantime.runners.shell.launcher import Launcher
from meantime.runners.shell.shim_watch import ShimWatch
from meantime.testing import FakeClock
from outcomes import completed
from runtimes import runtime_of

from .owners import QUICK, Owner, let_go, released, told, wait_for
from .saying import lives

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.mark.core("the one command that outlives its owner")
@pytest.mark.behaviour("P4")
async def test_a_running_command_is_found_again(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path, "exit 3"))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        assert (await thread.get(id)).status == "running"
        follow = thread.log(id).follow()
        assert (await anext(follow)).text == "before\n"
        await asyncio.to_thread(let_go, tmp_path)
        chunk = await anext(follow)
        assert (chunk.text, chunk.offset) == ("after\n", len("before\n"))
        [task] = await thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Failed)
        assert (task.outcome.exit_code, task.outcome.partial) == (3, "before\nafter\n")
        assert await told(thread) == [(id, "failed")]
        assert await told(thread) == []
    assert len((tmp_path / "started").read_text().split()) == 1


@pytest.mark.behaviour("P4")
async def test_a_command_that_ended_meanwhile_tells_its_true_exit_code(
    owner: Owner, path: Path, tmp_path: Path
):
    id = owner.start(released(tmp_path, f"echo gone > {tmp_path}/gone"))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()
    await asyncio.to_thread(let_go, tmp_path)
    await wait_for(tmp_path / "gone", "gone")

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        [task] = await thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Completed)
        assert task.outcome.result == "before\nafter\n"
        assert await told(thread) == [(id, "completed")]


async def test_a_found_command_can_be_cancelled(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path))
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        answer = await mt.cancel(id, wait=True)
        assert answer.task.status == "cancelled"
    pid = int((tmp_path / "started").read_text())
    assert not lives(pid)


async def test_a_cancel_is_carried_out_by_the_next_owner(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(f"trap '' TERM; {released(tmp_path)}")
    await wait_for(tmp_path / "started", "\n")
    assert owner.ask(cancel=id) == "applied"
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(id, timeout=LIMIT)
        assert task.status == "cancelled"


async def test_at_once_if_its_shim_was_never_told(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    slow = Settings(stop_grace=10 * LIMIT, stop_deadline=20 * LIMIT)
    mt = await Meantime.open(path, settings=slow)
    with monkeypatch.context() as killed:
        killed.setattr(ShimWatch, "stop", lambda self, grace: None)
        handle = await mt.thread("conv-1").start(Shell(released(tmp_path)))
        await wait_for(tmp_path / "started", "\n")
        await handle.cancel()
        await runtime_of(mt).store.close()  # pyright: ignore[reportPrivateUsage]
    async with Meantime.open(path, settings=slow) as mt:
        [task] = await mt.thread("conv-1").wait(handle.id, timeout=LIMIT)
        assert task.status == "cancelled"


@pytest.mark.behaviour("P9")
async def test_the_timeout_of_a_running_command_goes_on(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(released(tmp_path), options={"timeout": 600.0})
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    clock = FakeClock()
    async with Meantime.open(path, clock=clock, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        assert (await anext(thread.log(id).follow())).text == "before\n"
        await clock.until(lambda: any(LIMIT < left < 600.0 for left in clock.due_in))  # what is left of it
        await clock.advance(600.0)
        [task] = await thread.wait(id)
        assert isinstance(task.outcome, TimedOut)
        assert task.outcome.partial == "before\n"


async def test_stdin_can_still_be_sent(owner: Owner, path: Path, tmp_path: Path):
    id = owner.start(f"echo up > {tmp_path}/started; cat", open_stdin=True)
    await wait_for(tmp_path / "started", "up")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        await thread.send(id, "hello\n", eof=True)
        [task] = await thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Completed)
        assert task.outcome.result == "hello\n"


async def test_what_was_queued_is_started_once(owner: Owner, path: Path, tmp_path: Path):
    for _ in range(4):
        owner.start(released(tmp_path))
    queued = owner.start(f"echo ran >> {tmp_path}/queued")
    await wait_for(tmp_path / "started", "\n")
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        await mt.set_limits(per_thread=10)
        [task] = await thread.wait(queued, timeout=LIMIT)
        assert task.status == "completed"
        await thread.cancel_all()
        await thread.wait(timeout=LIMIT)
    assert (tmp_path / "queued").read_text() == "ran\n"


async def test_values_of_the_environment_are_not_stored(owner: Owner, path: Path, tmp_path: Path):
    """So what was queued with some cannot be run by another owner, and says why."""
    for _ in range(4):
        owner.start(released(tmp_path))
    queued = owner.start("echo $TOKEN", env={"TOKEN": "hunter2"})
    owner.kill()

    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(queued, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "its environment, or its stdin, is never stored" in task.outcome.reason
        await mt.thread("conv-1").cancel_all()
        await mt.thread("conv-1").wait(timeout=LIMIT)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files
    assert not any(b"hunter2" in file.read_bytes() for file in files)


async def test_nor_is_it_begun_without_them(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Killed after the task was recorded, before anybody had its order."""

    async def too_late(self: Launcher, order: object) -> None:
        await asyncio.Event().wait()

    mt = await Meantime.open(path, settings=QUICK)
    with monkeypatch.context() as killed:
        killed.setattr(Launcher, "launch", too_late)
        handle = await mt.thread("conv-1").start(Shell(f"touch {tmp_path}/ran", env={"TOKEN": "hunter2"}))
        await runtime_of(mt).store.close()  # pyright: ignore[reportPrivateUsage]
    async with Meantime.open(path, settings=QUICK) as mt:
        [task] = await mt.thread("conv-1").wait(handle.id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "not stored" in task.outcome.reason
    assert not (tmp_path / "ran").exists()


async def test_a_command_that_was_taken_up_before_it_listens_is_told_when_it_does(
    owner: Owner, path: Path, tmp_path: Path
):
    """Its shim makes the pipe a moment after the command began: an owner may be quicker than that."""
    id = owner.start(f"echo up > {tmp_path}/started; cat", open_stdin=True)
    await wait_for(tmp_path / "started", "up")
    [pipe] = await until_async(lambda: list(path.parent.rglob("*.control")), "its shim listens")
    owner.kill()
    aside = pipe.with_suffix(".aside")
    pipe.rename(aside)

    async with Meantime.open(path, settings=QUICK) as mt:
        thread = mt.thread("conv-1")
        sending = asyncio.ensure_future(thread.send(id, "hello\n", eof=True))
        await stays_async(lambda: not sending.done(), "it waits for the pipe", 0.05)
        aside.rename(pipe)
        await sending
        [task] = await thread.wait(id, timeout=LIMIT)
        assert completed(task).result == "hello\n"
