"""F of the matrix: how work is started, found again by its id, and refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from jobs import Job, finished, start
from meantime import (
    Agent,
    Ambiguous,
    Call,
    Duplicate,
    Handle,
    InvalidInput,
    LimitReached,
    Meantime,
    MeantimeError,
    NotFound,
    NotResumable,
    RetryNotSupported,
    Status,
    TaskFailed,
    Thread,
)
from meantime.testing import FakeClock, FakeSessionRunner

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F6")
@pytest.mark.embedded
async def test_a_call_has_one_mode(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """Synchronous has a result and no task; background has a task and no result."""
    assert await thread.call(Call(len, "abc"), threshold=5) == ("synchronous", 3, None)
    assert await thread.call(Call(len, "abc")) == ("synchronous", 3, None)
    job = Job()
    calling = asyncio.ensure_future(thread.call(job.call, threshold=5))
    await clock.advance_to_alarm(5)
    answer = await calling
    assert (answer.mode, answer.result) == ("background", None)
    assert [task.id for task in await mt.list("all")] == [answer.task and answer.task.id]
    job.finish()


@pytest.mark.behaviour("F6")
async def test_a_tools_own_timeout_is_its_failure(mt: Meantime, thread: Thread) -> None:
    """A TimeoutError that the tool raises does not mean "still running"."""

    async def tool() -> None:
        raise TimeoutError("the server is slow")

    with pytest.raises(TimeoutError, match="the server is slow"):
        await thread.call(Call(tool), threshold=5)
    assert await mt.list("all") == []


@pytest.mark.behaviour("F6")
async def test_an_agent_that_fails_inline_raises(thread: Thread, agents: FakeSessionRunner) -> None:
    """What a runner reports as an error is raised as one, never as a cancellation of the caller."""
    agents.fail_requests(400)
    with pytest.raises(TaskFailed, match="HTTP 400"):
        await thread.call(Agent("reader", "read it"))


@pytest.mark.behaviour("F6")
@pytest.mark.embedded
@pytest.mark.parametrize("rounds", range(6))
async def test_a_caller_that_goes_away_stops_a_call_and_leaves_a_task(
    mt: Meantime, thread: Thread, clock: FakeClock, rounds: int
) -> None:
    """Around the hand-off: what is a task goes on, what is none is stopped; never a task that was stopped
    although nobody asked for it."""
    job = Job()
    calling = asyncio.ensure_future(thread.call(job.call, threshold=5))
    await clock.until(lambda: 5.0 in clock.due_in)

    async def go_away() -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
        calling.cancel()

    leaving: list[asyncio.Future[None]] = []
    clock.call_later(5, lambda: leaving.append(asyncio.ensure_future(go_away())))
    await clock.advance(5)
    await asyncio.wait([calling])

    await finished(mt.thread("other"))  # whatever was on its way to the disk before it has landed, too
    for task in await thread.list("all"):
        assert not job.asked_to_stop.is_set()
        job.finish("done")
        assert (await thread.wait(task))[0].status is Status.COMPLETED
    assert job.asked_to_stop.is_set() or await thread.list("all")


@pytest.mark.in_process("work of a pool does not count against `total`")
@pytest.mark.behaviour("F7")
async def test_a_second_start_for_the_same_tool_call_is_refused(mt: Meantime, thread: Thread) -> None:
    """Of many starts at once for one tool call, one is accepted and the others name it."""
    jobs = [Job() for _ in range(10)]
    answers = await asyncio.gather(
        *(thread.start(job.call, tool_call_id="call-1") for job in jobs), return_exceptions=True
    )
    (won,) = [answer for answer in answers if isinstance(answer, Handle)]
    refused = [answer for answer in answers if isinstance(answer, Duplicate)]
    assert [problem.existing for problem in refused] == [won.id] * 9
    assert len(await mt.list("all")) == 1
    assert (await mt.stats())["slots.running"] == 1
    jobs[answers.index(won)].finish()
    await won.wait()
    assert sum(job.executions for job in jobs) == 1


@pytest.mark.behaviour("F7")
async def test_a_tool_call_is_remembered_over_a_restart(tmp_path: Path) -> None:
    """The same call after a restart is refused, too (P1)."""
    async with Meantime.open(tmp_path / "work.db") as mt:
        first = await finished(mt.thread("a"), tool_call_id="call-1")
    async with Meantime.open(tmp_path / "work.db") as mt:
        with pytest.raises(Duplicate) as refused:
            await mt.thread("a").start(Call(len, ""), tool_call_id="call-1")
        assert refused.value.existing == first.id


@pytest.mark.behaviour("F8")
async def test_ids_are_unique_and_duplicates_refused(mt: Meantime, thread: Thread) -> None:
    """Of many starts at once with one id, in any thread, one is accepted."""
    threads = [mt.thread(f"conv-{number}") for number in range(10)]
    answers = await asyncio.gather(
        *(thread.start(Call(len, ""), id="mine") for thread in threads), return_exceptions=True
    )
    assert sorted(type(answer).__name__ for answer in answers) == ["Duplicate"] * 9 + ["Handle"]
    made = await asyncio.gather(*(thread.start(Call(len, "")) for _ in range(50)))
    assert len({handle.id for handle in made}) == 50
    await thread.wait(*made)


@pytest.mark.behaviour("F9")
async def test_parent_message_agent_and_depth_are_recorded(mt: Meantime, thread: Thread) -> None:
    """What work starts knows its parent and how deep it is; what a thread starts has neither."""
    children: list[Handle] = []

    async def grow(depth: int) -> None:
        if depth:
            children.append(await mt.thread(f"inner-{depth}").start(Call(grow, depth - 1)))
            await children[-1].wait()

    root = await thread.start(Call(grow, 2), message_id="m-1")
    await root.wait()
    reader = await thread.start(Agent("reader", "read it"))
    await reader.wait()
    first, second = sorted([await child.get() for child in children], key=lambda task: task.depth)
    task = await root.get()
    assert (task.parent, task.depth, task.thread, task.message_id) == (None, 0, "conv-1", "m-1")
    assert (first.parent, first.depth, first.thread) == (root.id, 1, "inner-2")
    assert (second.parent, second.depth, second.thread) == (first.id, 2, "inner-1")
    assert (task.agent, (await reader.get()).agent) == ("", "reader")


@pytest.mark.behaviour("F10")
async def test_display_ids_grow_where_siblings_collide(thread: Thread) -> None:
    """People see eight characters of an id, more where two share them."""
    jobs = [await start(thread, id=id) for id in ("t_abcdefgh11", "t_abcdefgh22", "t_zyxwvuts11")]
    lines = (await thread.reminder()).splitlines()[1:4]
    assert [line.split()[1] for line in lines] == ["abcdefgh1", "abcdefgh2", "zyxwvuts"]
    for job, _ in jobs:
        job.finish()


@pytest.mark.behaviour("F11")
async def test_the_id_of_a_notice_names_its_task(mt: Meantime, thread: Thread) -> None:
    """A model that was told of `t_x.1` asks for `t_x.1`. A task that really is called so comes first, and
    another thread's is not found."""
    await finished(thread, "first", id="told")
    assert (await thread.output("told.1")).value == "first"
    await finished(thread, "second", id="told.1")
    assert (await thread.output("told.1")).value == "second"
    for wrong in ("other.1", "told.2", "told.0", "told.x", ".1", "tol.1"):
        with pytest.raises(NotFound):
            await thread.get(wrong)
    with pytest.raises(NotFound):
        await mt.thread("conv-2").get("told.1")


@pytest.mark.behaviour("F11")
async def test_a_task_is_found_by_a_prefix_of_its_id(mt: Meantime, thread: Thread) -> None:
    """Exact, else a unique prefix, else an error that lists the candidates, across all kinds."""
    for id, work in (("t_abc1", Call(len, "")), ("t_abc2", Agent("reader", "x")), ("t_abc", Call(len, ""))):
        await (await thread.start(work, id=id)).wait()
    assert (await thread.get("t_abc")).id == "t_abc"
    assert (await thread.get("t_abc2")).id == "t_abc2"
    await (await mt.thread("other").start(Call(len, ""), id="t_xyz1")).wait()
    assert (await mt.get("xy")).id == "t_xyz1"
    with pytest.raises(NotFound):
        await thread.get("xy")
    with pytest.raises(Ambiguous) as problem:
        await thread.get("ab")
    assert sorted(problem.value.candidates) == ["t_abc", "t_abc1", "t_abc2"]
    assert "t_abc1" in str(problem.value)


@pytest.mark.behaviour("F12")
async def test_fork_and_resume_exclude_each_other(mt: Meantime, thread: Thread) -> None:
    """Both at once is refused, and nothing is created or resumed."""
    handle = await thread.start(Agent("reader", "read it"))
    before = await handle.wait()
    with pytest.raises(InvalidInput) as refused:
        await thread.start(Agent("reader", "go on"), fork=True, resume=handle.id)
    assert refused.value.code == "fork_and_resume"
    assert await mt.list("all") == [before]


@pytest.mark.behaviour("F13")
async def test_errors_are_typed_with_stable_codes(thread: Thread) -> None:
    """Every refusal has a code that does not change and a text that says what to do."""
    job, running = await start(thread, id="busy")
    ended = await finished(thread, id="ended", tool_call_id="call-1")
    cases: list[tuple[Callable[[], Awaitable[object]], type[MeantimeError], str]] = [
        (lambda: thread.get("nobody"), NotFound, "not_found"),
        (lambda: thread.get("../etc"), InvalidInput, "invalid_input"),
        (lambda: thread.start(Call(len, ""), id="ended"), Duplicate, "duplicate_id"),
        (lambda: thread.start(Call(len, ""), tool_call_id="call-1"), Duplicate, "duplicate_tool_call"),
        (lambda: thread.start(Call(len, ""), timeout=0), InvalidInput, "invalid_input"),
        (lambda: thread.start(Call(len, ""), retry="always"), InvalidInput, "invalid_input"),
        (lambda: thread.resume(running, "go on"), NotResumable, "still_active"),
        (lambda: thread.resume(ended, "go on"), NotResumable, "not_resumable"),
        (lambda: thread.retry(ended), RetryNotSupported, "retry_not_supported"),
        (lambda: thread.list("sleeping"), InvalidInput, "invalid_input"),
        (lambda: thread.batch("none").count(), NotFound, "not_found"),
    ]
    for verb, kind, code in cases:
        with pytest.raises(kind) as problem:
            await verb()
        assert problem.value.code == code
        assert problem.value.hint or code == "invalid_input"
        assert str(problem.value).startswith(problem.value.message)
    assert LimitReached.code == "limit_reached"
    job.finish()
    assert (await running.wait()).status is Status.COMPLETED
