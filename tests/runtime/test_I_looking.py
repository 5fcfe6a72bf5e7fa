"""I of the matrix: progress, output, waiting, lists."""

from __future__ import annotations

import asyncio
import time

import pytest

from jobs import Job, finished, start, take_turn
from meantime import (
    Agent,
    Call,
    InvalidInput,
    Meantime,
    NotFound,
    Status,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    Thread,
    current,
)
from meantime.testing import FakeClock, FakeSessionRunner, Reply

pytestmark = pytest.mark.anyio


async def test_I1_progress(thread: Thread, clock: FakeClock) -> None:
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
    assert "100 % testing 3 of 7" in await thread.reminder()
    job.finish()
    assert (await handle.wait()).progress == progress


async def test_I1_progress_of_a_thread_and_of_an_agent(thread: Thread, agents: FakeSessionRunner) -> None:
    """Said from any thread, by any runner; what is said last is kept with the ending."""

    def sync() -> None:
        current().progress(50, phase="half")
        time.sleep(0)

    agents._replies = Reply(tools=("read", "read", "edit"))
    function = await (await thread.start(Call(sync))).wait()
    agent = await (await thread.start(Agent("reader", "x"))).wait()
    assert function.progress is not None
    assert (function.progress.percent, function.progress.phase) == (50, "half")
    assert agent.progress is not None
    assert agent.progress.tool_calls == {"read": 2, "edit": 1}


async def test_I1_progress_reaches_the_ledger_now_and_then(
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
    stored = await mt._runtime.store.load(handle.id)
    assert stored is not None
    assert stored.progress is not None
    assert stored.progress.percent == 99
    job.finish()


async def test_I2_output_does_not_block(thread: Thread) -> None:
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


async def test_I2_output_waits_only_when_asked(thread: Thread, clock: FakeClock) -> None:
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


async def test_I3_wait_for_one_any_all(thread: Thread, clock: FakeClock) -> None:
    (first, one), (second, two), (third, three) = [await start(thread) for _ in range(3)]
    second.finish()
    statuses = [task.status for task in await thread.wait(one, two, three, until="any")]
    assert statuses == [Status.RUNNING, Status.COMPLETED, Status.RUNNING]
    waiting = asyncio.ensure_future(thread.wait(one, two, three))
    await clock.settle()
    first.finish()
    await one.wait()
    assert not waiting.done()
    third.finish()
    assert {task.status for task in await waiting} == {Status.COMPLETED}
    assert [task.id for task in await thread.wait(three, one)] == [three.id, one.id]


async def test_I3_wait_has_a_timeout(thread: Thread, clock: FakeClock) -> None:
    """When it is over, the tasks come back as they are, and go on."""
    job, handle = await start(thread)
    waiting = asyncio.ensure_future(handle.wait(timeout=5))
    await clock.advance_to_alarm(5)
    assert (await waiting).status is Status.RUNNING
    assert (await handle.wait(timeout=0)).status is Status.RUNNING
    job.finish()
    assert (await handle.wait()).status is Status.COMPLETED


async def test_I3_the_same_task_twice_is_waited_for_once(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread)
    waiting = asyncio.ensure_future(thread.wait(handle, handle.id, until="any"))
    await clock.settle()
    assert not waiting.done()
    job.finish()
    assert {task.status for task in await waiting} == {Status.COMPLETED}


async def test_I3_a_result_or_the_ending_as_an_error(thread: Thread) -> None:
    failed = await finished(thread, OSError("no"))
    _, cancelled = await start(thread)
    await cancelled.cancel()
    job, running = await start(thread)
    with pytest.raises(TaskFailed) as problem:
        await failed.result()
    assert problem.value.task.id == failed.id
    with pytest.raises(TaskCancelled):
        await cancelled.result()
    with pytest.raises(TaskEnded, match="still running"):
        await running.result(timeout=0)
    job.finish()


async def test_I8_lists(mt: Meantime, thread: Thread) -> None:
    """Active by default, by statuses, all; newest first; paged; a person's list is of all."""
    ended = [(await finished(thread)).id for _ in range(3)]
    job, running = await start(thread)
    assert [task.id for task in await thread.list()] == [running.id]
    assert [task.id for task in await thread.list("completed")] == ended[::-1]
    assert [task.id for task in await thread.list("all")] == [running.id, *ended[::-1]]
    assert [task.id for task in await thread.list("all", limit=2, offset=1)] == [ended[2], ended[1]]
    assert {task.id for task in await mt.list()} == {running.id, *ended}
    assert [task.id for task in await mt.list("running", thread="conv-1")] == [running.id]
    for bad in ({"limit": 0}, {"limit": 5_000}, {"offset": -1}):
        with pytest.raises(InvalidInput):
            await thread.list("all", **bad)
    job.finish()


async def test_I9_only_the_callers_own(mt: Meantime, thread: Thread) -> None:
    handle = await finished(thread)
    other = mt.thread("other")
    assert await other.list("all") == []
    assert await other.list("all", history=True) == []
    assert await other.reminder() == ""
    assert await other.clear() == 0
    assert [task.id for task in await mt.list("all")] == [handle.id]


async def test_I10_wrong_thread_is_the_canonical_not_found(mt: Meantime, thread: Thread) -> None:
    """Every verb that names a task; it reads as if the task never was."""
    job, handle = await start(thread)
    other = mt.thread("other")
    for verb in (other.get, other.output, other.wait, other.result, other.cancel, other.runs, other.clear):
        with pytest.raises(NotFound, match=f"No task '{handle.id}' in this thread."):
            await verb(handle.id)
    with pytest.raises(NotFound):
        await other.resume(handle.id, "go on")
    async with other.turn() as turn:
        with pytest.raises(NotFound):
            await turn.output(handle.id)
    job.finish()


async def test_I11_resumed_and_forked_are_marked(thread: Thread) -> None:
    plain = await thread.start(Agent("reader", "one"))
    await plain.wait()
    forked = await thread.start(Agent("reader", "one"), fork=True)
    await forked.wait()
    await (await thread.resume(plain, "two")).wait()
    assert [(task.resumed, task.forked) for task in await thread.list("all")] == [
        (True, False),
        (False, True),
    ]


async def test_I13_durations_for_people(thread: Thread, clock: FakeClock) -> None:
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


async def test_I14_retention(thread: Thread) -> None:
    """The newest 20 endings and every untold one; an evicted id still answers."""
    ids = [(await finished(thread)).id for _ in range(22)]
    assert len(await thread.list("all")) == 22
    await take_turn(thread)
    assert [task.id for task in await thread.list("all")] == ids[:1:-1]
    assert (await thread.get(ids[0])).ended
    assert (await thread.output(ids[0])).value == "done"


async def test_I15_nothing_is_left_in_memory(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """What has ended and was told leaves no trace in the process."""
    for number in range(30):
        job, handle = await start(mt.thread(f"conv-{number}"), timeout=50)
        if number % 3:
            job.finish(number)
        else:
            await handle.cancel()
        await handle.wait()
        await take_turn(mt.thread(f"conv-{number}"))
    await clock.advance(60)
    parts = mt._runtime
    left = [
        parts.record.live,
        parts.record.of_thread,
        parts.runs.live,
        parts.looking._waiting,
        parts.announcing._turns,
        parts.announcing._busy,
        parts.announcing._unread,
        parts.announcing._sleepers,
        parts.admission._queued,
        parts.admission._held,
        parts.engine._performing,
    ]
    assert left == [type(part)() for part in left]
    assert (await mt.stats())["slots.running"] == 0
    assert len(clock.due_in) == 1  # the reconciler's


async def test_I15_what_work_says_is_bounded(thread: Thread) -> None:
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


async def test_I16_retrieved_time(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
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
