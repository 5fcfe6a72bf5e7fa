"""Work that starts later: queued until then, outside of all queues, over restarts and jumps of the clock."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import (
    Agent,
    Call,
    InvalidInput,
    LimitReached,
    Limits,
    Meantime,
    Settings,
    Shell,
    Task,
    Thread,
    background,
)
from meantime.kernel.change import Facts
from meantime.kernel.due_heap import SLACK
from meantime.kernel.lifecycle import Move
from meantime.runtime.due_alarm import AT_ONCE
from meantime.runtime.record import Moved
from meantime.testing import FakeClock, FakeSessionRunner
from runtimes import runtime_of

pytestmark = [pytest.mark.anyio, pytest.mark.in_process("the owner starts it, wherever it then runs")]
HOUR = 3_600.0


@background
def delayed_double(number: int) -> int:
    return 2 * number


@background
async def delayed_nap() -> None:
    await asyncio.Event().wait()


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_it_is_queued_until_then_and_starts_once(thread: Thread, clock: FakeClock) -> None:
    handle = await thread.start(Call(delayed_double, 21), delay="20m", timeout=60)
    task = await thread.get(handle)
    assert task.status == "queued"
    assert task.run.not_before is not None
    assert task.run.not_before.at == clock.now() + 1_200
    assert await thread.position(handle) is None
    await clock.advance(1_199.0)
    assert (await thread.get(handle)).status == "queued"
    await clock.advance(1.0)
    assert await handle.result() == 42
    ended = await thread.get(handle)
    assert ended.run.started_at == clock.now()  # its timeout began then
    async with thread.turn() as turn:
        assert [notice.text for notice in turn.notices] == ["42"]
        await turn.ack()


async def test_it_takes_no_slot_and_no_place_before_its_time(ledger: str, clock: FakeClock) -> None:
    settings = Settings(limits=Limits(per_thread=1, total=1))
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread = mt.thread("a")
        later = await thread.start(Call(delayed_double, 1), delay=60)
        first = await thread.start(Call(delayed_nap))
        second = await thread.start(Call(delayed_double, 2))
        assert (await thread.get(first)).status == "running"
        assert await thread.position(second) == 1
        await clock.advance(60.0)
        assert await thread.position(later) == 2  # its time has come: it waits as all others do
        await thread.cancel(first)
        assert await second.result() == 4
        assert await later.result() == 2


async def test_a_cancel_before_its_time_is_its_ending(thread: Thread, clock: FakeClock) -> None:
    handle = await thread.start(Call(delayed_double, 1), delay=60)
    await thread.cancel(handle)
    assert (await thread.get(handle)).status == "cancelled"
    await clock.advance(120.0)
    assert (await thread.get(handle)).status == "cancelled"


async def test_cancelled_starts_leave_nothing_behind(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    delayed = runtime_of(mt).delayed
    kept = await thread.start(Call(delayed_double, 1), delay=60)
    for _ in range(3 * SLACK):
        await thread.cancel(await thread.start(Call(delayed_double, 1), delay=HOUR))
    assert len(delayed) == 1
    assert delayed._due.entries <= SLACK + 2
    await clock.advance(60.0)
    assert await kept.result() == 2


@pytest.mark.parametrize("missed", [False, True], ids=["in time", "missed"])
async def test_a_restart_keeps_it(tmp_path: Path, missed: bool) -> None:
    clock = FakeClock()
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:
        handle = await mt.thread("a").start(Shell("echo hello"), at=clock.now() + 60)
    later = FakeClock(clock.now() + (HOUR if missed else 30))
    later.boot = "boot-2"
    async with Meantime.open(tmp_path / "work.db", clock=later) as mt:
        thread = mt.thread("a")
        if not missed:
            assert (await thread.get(handle.id)).status == "queued"
            await later.advance(30.0)
        (task,) = await thread.wait(handle.id)
        assert task.status == "completed"
        assert (await thread.output(handle.id)).text.strip() == "hello"


async def test_what_is_not_stored_is_refused_at_once(thread: Thread) -> None:
    secret = object()
    for work in (
        Call(lambda: secret),
        Call(delayed_double, secret),  # type: ignore[call-overload]
        Shell("true", env={"TOKEN": "x"}),
        Shell("cat", stdin=b"\xff"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await thread.start(work, delay=60)
        assert refused.value.code == "not_storable"
    assert await thread.list("all") == []


async def test_work_that_somebody_waits_for_cannot_be_delayed(thread: Thread) -> None:
    with pytest.raises(InvalidInput, match="cannot be delayed"):
        await thread.call(Call(delayed_double, 1), delay=60)


async def test_a_limit_that_refuses_it_then_is_told_as_its_ending(ledger: str, clock: FakeClock) -> None:
    settings = Settings(limits=Limits(per_thread=1))
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread = mt.thread("a")
        handle = await thread.start(Call(delayed_double, 1), delay=60, on_limit="reject")
        await thread.start(Call(delayed_nap))
        await clock.advance(60.0)
        await handle.wait()
        task = await thread.get(handle)
        assert task.status == "failed"
        async with thread.turn() as turn:
            (notice,) = turn.notices
            assert (
                "could not be started when it was due: 1 of at most 1 call tasks are running" in notice.text
            )
            await turn.ack()


async def test_an_agent_that_is_gone_then_is_told_as_its_ending(tmp_path: Path) -> None:
    clock = FakeClock()
    runner = FakeSessionRunner()
    async with Meantime.open(tmp_path / "work.db", clock=clock, runners=[runner]) as mt:
        handle = await mt.thread("a").start(Agent("explore", "look"), delay=60)
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:  # no such agent is configured here
        thread = mt.thread("a")
        assert (await thread.get(handle.id)).status == "queued"
        await clock.advance(60.0)
        (task,) = await thread.wait(handle.id)
        assert task.status == "failed"
        async with thread.turn() as turn:
            assert "could not be started when it was due" in turn.notices[0].text
            await turn.ack()


async def test_a_sleep_of_the_machine_and_a_jump_of_its_clock_are_noticed(
    thread: Thread, clock: FakeClock
) -> None:
    slept = await thread.start(Call(delayed_double, 1), delay=HOUR)
    clock.sleep(HOUR)
    await clock.advance_to_alarm(5.0)  # a reconciler's round
    assert await slept.result() == 2
    jumped = await thread.start(Call(delayed_double, 2), at=clock.now() + HOUR)
    unmoved = await thread.start(Call(delayed_double, 3), delay=HOUR)
    clock.jump(HOUR)
    await clock.advance_to_alarm(5.0)
    assert await jumped.result() == 4
    assert (await thread.get(unmoved)).status == "queued"


@pytest.mark.breadth
async def test_many_that_are_due_together_all_run_once(ledger: str, clock: FakeClock) -> None:
    """Others have their turn in between: in one turn of the loop a few begin."""
    many = 300
    async with Meantime.open(ledger, clock=clock, settings=Settings(limits=Limits(total=-1))) as mt:
        thread, delayed = mt.thread("a"), runtime_of(mt).delayed
        handles = [await thread.start(Call(delayed_double, n), delay=60) for n in range(many)]
        await clock.advance(59.0)
        clock.sleep(2.0)
        delayed.look_at_clocks()
        left, most = len(delayed), 0
        async with asyncio.timeout(LIMIT):
            while len(delayed):
                await asyncio.sleep(0)
                left, most = len(delayed), max(most, left - len(delayed))
        assert 0 < most <= AT_ONCE
        assert [await handle.result() for handle in handles] == [2 * n for n in range(many)]


async def test_delayed_starts_count_as_tasks_that_wait(ledger: str) -> None:
    async with Meantime.open(ledger, settings=Settings(limits=Limits(queued=2))) as mt:
        for _ in range(2):
            await mt.thread("a").start(Call(delayed_double, 1), delay=HOUR)
        with pytest.raises(LimitReached, match="2 tasks wait"):
            await mt.thread("a").start(Call(delayed_double, 1), delay=HOUR)


async def test_a_copy_of_a_ledger_leaves_it_to_the_original(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:
        handle = await mt.thread("a").start(Call(delayed_double, 1), delay=60)
    for file in tmp_path.glob("work.db*"):
        if file.is_file():
            (tmp_path / file.name.replace("work", "copy")).write_bytes(file.read_bytes())
    async with Meantime.open(tmp_path / "copy.db", clock=clock) as mt:
        assert (await mt.thread("a").get(handle.id)).status == "lost"


async def test_a_copy_starts_what_may_run_twice_when_it_is_due(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:
        handle = await mt.thread("a").start(Call(delayed_double, 1), delay=60, retry="idempotent")
    for file in tmp_path.glob("work.db*"):
        if file.is_file():
            (tmp_path / file.name.replace("work", "copy")).write_bytes(file.read_bytes())
    async with Meantime.open(tmp_path / "copy.db", clock=clock) as mt:
        thread = mt.thread("a")
        await clock.advance(59.0)
        assert (await thread.get(handle.id)).status == "queued"
        await clock.advance(1.0)
        (task,) = await thread.wait(handle.id)
        assert (task.status, task.run.started_at) == ("completed", clock.now())


async def test_people_see_when_it_starts(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    handle = await thread.start(Call(delayed_double, 1), delay=60)
    (facts,) = await runtime_of(mt).row_facts([handle.id])
    assert facts.position is None
    assert "queued" in await thread.reminder()


async def test_a_cancel_while_another_of_its_group_is_refused_takes_no_slot(
    ledger: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(limits=Limits(per_thread=1))
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread, record = mt.thread("a"), runtime_of(mt).record
        refused = await thread.start(Call(delayed_double, 1), delay=60, on_limit="reject")
        cancelled = await thread.start(Call(delayed_double, 2), delay=60)
        busy = await thread.start(Call(delayed_nap))
        insist = record.insist

        async def cancel_first(id: str, move: Move, facts: Facts) -> Moved:
            if id == refused.id:
                await thread.cancel(cancelled)
            return await insist(id, move, facts)

        monkeypatch.setattr(record, "insist", cancel_first)
        await clock.advance(60.0)
        await refused.wait()
        assert (await thread.get(cancelled)).status == "cancelled"
        await thread.cancel(busy)
        async with asyncio.timeout(LIMIT):
            assert await (await thread.start(Call(delayed_double, 3))).result() == 6


async def test_a_mistake_of_a_runner_ends_that_one_task(
    mt: Meantime, thread: Thread, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await thread.start(Call(delayed_double, 1), delay=60)
    second = await thread.start(Call(delayed_double, 2), delay=60)
    runner = runtime_of(mt).engine.runner("call")

    def can_run(task: Task) -> bool:
        if task.id == first.id:
            raise KeyError("model")
        return True

    monkeypatch.setattr(runner, "can_run", can_run)
    await clock.advance(60.0)
    async with asyncio.timeout(LIMIT):
        assert await second.result() == 4
        await first.wait()
    async with thread.turn() as turn:
        assert any("when it was due: KeyError: 'model'" in notice.text for notice in turn.notices)
        await turn.ack()
