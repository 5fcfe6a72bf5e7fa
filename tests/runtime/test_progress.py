"""I1, I2, I13, I15 and I16 of the matrix: what can be seen of a run."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import until_async

from jobs import Job, start, take_turn
from meantime import (
    Agent,
    Call,
    InvalidInput,
    Meantime,
    Status,
    Thread,
    current,
)
from meantime.testing import FakeClock, FakeSessionRunner, Reply
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


@pytest.mark.in_process("its progress arrives from another machine, a moment later")
@pytest.mark.behaviour("I1")
@pytest.mark.embedded
async def test_progress_is_seen_while_work_runs(thread: Thread, clock: FakeClock) -> None:
    """Tool calls by name, the last tools, phase, percent and the time of the last update."""
    job = Job()

    async def work() -> None:
        said = current()
        for tool in ("read", "grep", "read", "edit", "read", "test", "read"):
            said.progress(tool=tool)
        said.progress(140, phase="testing", message="3 of 7")
        await job.work()

    handle = await thread.start(Call(work))
    await job.started.wait()
    progress = (await handle.get()).progress
    assert progress is not None
    assert (progress.tool_calls, progress.calls) == ({"read": 4, "grep": 1, "edit": 1, "test": 1}, 7)
    assert progress.last_tools == ("read", "edit", "read", "test", "read")
    assert (progress.percent, progress.phase, progress.message) == (100, "testing", "3 of 7")
    assert progress.updated_at == clock.now()
    await clock.advance_to_alarm(0.25)

    async def is_shown() -> bool:
        return "100 % testing 3 of 7" in await thread.reminder()

    await until_async(is_shown, "the reminder shows it", thread.reminder)
    job.finish()
    assert (await handle.wait()).progress == progress


@pytest.mark.behaviour("I1")
async def test_a_thread_and_an_agent_report_progress_too(thread: Thread, agents: FakeSessionRunner) -> None:
    """Said from any thread, by any runner; what is said last is kept with the ending."""

    def sync() -> None:
        current().progress(50, phase="half")

    agents._replies = Reply(tools=("read", "read", "edit"))
    function = await (await thread.start(Call(sync))).wait()
    agent = await (await thread.start(Agent("reader", "x"))).wait()
    assert function.progress is not None
    assert (function.progress.percent, function.progress.phase) == (50, "half")
    assert agent.progress is not None
    assert agent.progress.tool_calls == {"read": 2, "edit": 1}


@pytest.mark.in_process("a placed start is two events: submitted, and started by the claim")
@pytest.mark.behaviour("I1")
@pytest.mark.embedded
async def test_progress_reaches_the_ledger_now_and_then(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """Many updates share a write; the journal has one event for them."""
    job = Job()

    async def work() -> None:
        for percent in range(100):
            current().progress(percent)
        await job.work()

    handle = await thread.start(Call(work))
    await job.started.wait()
    await clock.advance_to_alarm(0.25)
    kinds: list[str] = []
    async for event in mt.events():
        kinds.append(event.kind)
        if "progress" in kinds:
            break
    assert kinds == ["submitted", "progress"]
    stored = await runtime_of(mt).store.load(handle.id)
    assert stored is not None
    assert stored.progress is not None
    assert stored.progress.percent == 99
    job.finish()


@pytest.mark.behaviour("I2")
@pytest.mark.in_process("emitted values arrive from another machine, a moment later")
async def test_output_does_not_block(thread: Thread) -> None:
    """Of a running task: what it has emitted so far; of an ended one: its result."""
    job = Job()

    async def work() -> str:
        current().emit("found", [1])
        return await job.work()

    handle = await thread.start(Call(work))
    await job.started.wait()
    output = await handle.output()
    assert (output.value, output.emitted, output.partial) == (None, {"found": [1]}, True)
    job.finish("all")
    await handle.wait()
    output = await thread.output(handle)
    assert (output.value, output.emitted, output.partial) == ("all", {"found": [1]}, False)


@pytest.mark.behaviour("I2", "R6")
@pytest.mark.embedded
async def test_output_waits_only_when_asked(thread: Thread, clock: FakeClock) -> None:
    """At most ten minutes, and no longer than the task takes."""
    job, handle = await start(thread)
    waiting = asyncio.ensure_future(handle.output(wait=5_000))
    await clock.advance_to_alarm(600)
    assert (await waiting).partial
    waiting = asyncio.ensure_future(handle.output(wait=30))
    await clock.until(lambda: 30 in clock.due_in)
    job.finish("all")
    assert (await waiting).value == "all"
    with pytest.raises(InvalidInput):
        await handle.output(wait=-1)


@pytest.mark.behaviour("I13")
@pytest.mark.embedded
async def test_durations_are_shown_for_people(thread: Thread, clock: FakeClock) -> None:
    """In the reminder while it runs, and in the notice when it ended, wall-clock jumps or not."""
    job, handle = await start(thread)
    await clock.advance(45)
    assert " 45s:" in await thread.reminder()
    await clock.advance(3600 + 15 * 60)
    clock.jump(-86_400)
    job.finish()
    await handle.wait()
    async with thread.turn() as turn:
        assert "completed after 1h 15m 45s." in turn.render()[0].text
        await turn.ack()


@pytest.mark.in_process("an owner with workers always has an alarm set, for its next look at them")
@pytest.mark.behaviour("I15")
@pytest.mark.embedded
async def test_nothing_is_left_in_memory(mt: Meantime, clock: FakeClock) -> None:
    """Whatever has ended and was told leaves no trace in the process: its parts do not grow."""

    async def thirty_conversations(name: str) -> dict[str, int]:
        for number in range(30):
            thread = mt.thread(f"{name}-{number}")
            job, handle = await start(thread, timeout=50)
            if number % 3:
                job.finish(number)
            else:
                await handle.cancel()
            await handle.wait()
            await take_turn(thread)
        for _ in range(15):
            await clock.advance_to_alarm(5)  # the reconciler tidies up, too
        return _sizes(mt)

    before = await thirty_conversations("a")
    assert await thirty_conversations("b") == before
    assert (await mt.stats())["slots.running"] == 0
    await clock.until(lambda: len(clock.due_in) == 1)  # the reconciler's, once its round is over


def _sizes(mt: Meantime) -> dict[str, int]:
    """How much every part of the runtime holds; batches are remembered, up to a bound of their own."""
    return {
        f"{part}.{name}": len(held)
        for part, stage in vars(mt._runtime).items()
        if part not in ("batches", "store", "settings") and hasattr(stage, "__dict__")
        for name, held in vars(stage).items()
        if isinstance(held, dict | list | set)
    }


@pytest.mark.behaviour("I15")
async def test_what_work_says_is_bounded(thread: Thread) -> None:
    """Texts are cut; a run that emits without end is told so, and fails."""

    async def chatty() -> None:
        current().progress(phase="x" * 10_000, message="y" * 10_000)
        for number in range(1_000):
            current().emit(f"name-{number}", number)

    task = await (await thread.start(Call(chatty))).wait()
    assert task.status is Status.FAILED
    assert task.progress is not None
    assert (len(task.progress.phase), len(task.progress.message)) == (500, 500)
    assert task.outcome is not None
    assert len(task.outcome.emitted_vars) == 100


@pytest.mark.behaviour("I16")
@pytest.mark.embedded
async def test_the_time_of_the_first_read_is_kept(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """When an agent first read the ending; a person's read does not count, a later one changes nothing."""
    job, handle = await start(thread)
    await handle.output()
    job.finish()
    await handle.wait()
    await mt.output(handle.id)
    assert (await handle.get()).run.retrieved_at is None
    await clock.advance(7)
    first = clock.now()
    await thread.output(handle)
    await clock.advance(7)
    await thread.output(handle)
    assert (await handle.get()).run.retrieved_at == first


async def test_progress_that_is_due_after_a_close_begins_nothing() -> None:
    """An alarm may ring while the loop comes to its end: a task that began then would be destroyed."""
    async with Meantime.open(":memory:") as mt:
        runs = runtime_of(mt).runs
    before = asyncio.all_tasks()
    runs.beside(asyncio.sleep(0))
    assert asyncio.all_tasks() == before
