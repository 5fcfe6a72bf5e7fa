"""L18 to L26 of the matrix: resumes, batches, retries."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from jobs import Deaf, finished, start, take_turn
from meantime import (
    Agent,
    Call,
    Cancelled,
    Completed,
    Failed,
    Handle,
    Meantime,
    NotFound,
    NotResumable,
    RetryNotSupported,
    Status,
    Thread,
)
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable
from meantime.ports.runner import Assignment, Context
from meantime.testing import FakeClock, FakeSessionRunner, Session

pytestmark = pytest.mark.anyio


def _recall(session: Session) -> str:
    return f"heard: {', '.join(text for role, text in session.history if role == 'user')}"


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner(_recall)


async def _ended_agent(thread: Thread, prompt: str = "one") -> Handle:
    handle = await thread.start(Agent("reader", prompt))
    await handle.wait()
    return handle


@pytest.mark.behaviour("L16")
async def test_resume_goes_on_with_the_whole_history(thread: Thread) -> None:
    handle = await _ended_agent(thread)
    again = await thread.resume(handle, "two")
    assert again.id == handle.id
    assert await again.result() == "heard: one, two"


@pytest.mark.behaviour("L16")
@pytest.mark.embedded
async def test_a_cancelled_agent_can_be_resumed(
    thread: Thread, agents: FakeSessionRunner, clock: FakeClock
) -> None:
    """Any ending can be taken up again, as long as the session is there."""
    agents.hold()
    handle = await thread.start(Agent("reader", "one"))
    await clock.until(lambda: agents.at_gate)
    await handle.cancel(wait=True)
    agents.release()
    again = await thread.resume(handle, "two")
    assert await again.result() == "heard: one, two"


@pytest.mark.behaviour("L18")
async def test_concurrent_resume_is_refused(thread: Thread, agents: FakeSessionRunner) -> None:
    """Of many resumes at once, one is accepted; the others get the seed's text."""
    handle = await _ended_agent(thread)
    agents.hold()
    answers = await asyncio.gather(
        *(thread.resume(handle, f"try {n}") for n in range(5)), return_exceptions=True
    )
    refused = [answer for answer in answers if isinstance(answer, NotResumable)]
    assert len(refused) == 4
    assert {problem.code for problem in refused} == {"being_resumed"}
    assert "currently being resumed" in str(refused[0])
    agents.release()
    ended = await handle.wait()
    assert ended.run.number == 2
    (session,) = agents.sessions.values()
    assert len([text for role, text in session.history if role == "user"]) == 2


@pytest.mark.behaviour("L18")
async def test_a_running_task_cannot_be_resumed(thread: Thread, agents: FakeSessionRunner) -> None:
    agents.hold()
    handle = await thread.start(Agent("reader", "one"))
    with pytest.raises(NotResumable) as refused:
        await thread.resume(handle, "two")
    assert refused.value.code == "still_active"
    agents.release()


@pytest.mark.behaviour("L19")
async def test_a_resume_without_its_session_is_an_error_with_a_suggestion(
    thread: Thread, agents: FakeSessionRunner
) -> None:
    """The error suggests what to do, and the task is as it was."""
    handle = await _ended_agent(thread)
    before = await handle.get()
    assert before.session is not None
    agents.lose(before.session)
    with pytest.raises(NotResumable, match="Start a new task") as refused:
        await thread.resume(handle, "two")
    assert refused.value.code == "session_gone"
    assert await handle.get() == before


@pytest.mark.behaviour("L19")
async def test_a_function_has_no_session(thread: Thread) -> None:
    with pytest.raises(NotResumable) as refused:
        await thread.resume(await finished(thread), "two")
    assert refused.value.code == "not_resumable"


@pytest.mark.behaviour("L20", "R2")
@pytest.mark.embedded
async def test_resumes_are_counted_and_every_run_is_kept(thread: Thread, clock: FakeClock) -> None:
    """Every run keeps its prompt, its times and its ending."""
    handle = await _ended_agent(thread)
    for prompt in ("two", "three"):
        await clock.advance(10)
        await (await thread.resume(handle, prompt, timeout=30)).wait()
    task = await handle.get()
    assert (task.resume_count, task.resumed) == (2, True)
    runs = await thread.runs(handle)
    assert [run.run.number for run in runs] == [1, 2, 3]
    assert [run.run.prompt for run in runs] == ["", "two", "three"]
    assert [run.run.timeout for run in runs] == [None, 30, 30]
    assert [run.outcome for run in runs] == [
        Completed("heard: one"),
        Completed("heard: one, two"),
        Completed("heard: one, two, three"),
    ]
    assert runs[2].run.ended_at - runs[0].run.ended_at == 20  # pyright: ignore[reportOperatorIssue]


@pytest.mark.behaviour("L21", "R2")
async def test_every_run_has_a_notice_of_its_own(thread: Thread) -> None:
    """Each run is told, once, under an id of its own, also where two are told together."""
    handle = await _ended_agent(thread)
    assert await take_turn(thread) == [handle.id]
    for prompt in ("two", "three"):
        await (await thread.resume(handle, prompt)).wait()
    async with thread.turn() as turn:
        assert [notice.id for notice in turn.notices] == [f"{handle.id}.2", f"{handle.id}.3"]
        second, third = turn.render()
        await turn.ack()
    assert "resume #1" in second.text
    assert "heard: one, two, three" not in second.text
    assert "heard: one, two, three" in third.text


class DeafFirst(FakeSessionRunner):
    """An agent whose first run ignores every stop; the next ones are as they should be."""

    def __init__(self) -> None:
        super().__init__()
        self.deaf = Deaf()

    async def run(self, assignment: Assignment, context: Context) -> Report:
        if assignment.task.run.number > 1:
            return await super().run(assignment, context)
        return Report(result=jsonable(await self.deaf.work()), session="s-1")


@pytest.mark.behaviour("L21")
@pytest.mark.embedded
async def test_a_run_left_behind_cannot_touch_the_next(ledger: str, clock: FakeClock) -> None:
    """A run that was abandoned ends while its successor runs: that one goes on, and can be stopped."""
    agents = DeafFirst()
    agents.new_session("s-1", "reader")
    agents.hold()
    async with Meantime.open(ledger, clock=clock, runners=[agents]) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Agent("reader", "one"), session="s-1")
        await agents.deaf.started.wait()
        await handle.cancel()
        await clock.advance(10)
        assert (await handle.wait()).outcome == Cancelled("agent", abandoned=True)
        again = await thread.resume(handle, "two")
        await clock.until(lambda: agents.at_gate)
        agents.deaf.finish("late")
        await clock.settle()
        assert (await again.get()).status is Status.RUNNING
        await again.cancel(reason="enough")
        task = await asyncio.wait_for(again.wait(), LIMIT)
        assert (task.outcome, task.late_result) == (Cancelled("agent", "enough"), None)
        assert await take_turn(thread) == [handle.id, handle.id]


@pytest.mark.behaviour("L24")
async def test_batches_count_wait_and_cancel(thread: Thread) -> None:
    """A shared id; n of m in the notice; waiting and cancelling reach the whole batch."""
    batch = thread.batch("survey")
    jobs = [await start(thread, batch="survey") for _ in range(3)]
    alone, outside = await start(thread, batch="other")
    count = await batch.count()
    assert (count.ended, count.total, count.active) == (0, 3, 3)
    jobs[0][0].finish()
    await batch.wait(until="any")
    jobs[1][0].finish(OSError("no"))
    await jobs[1][1].wait()
    await batch.cancel()
    ended = await batch.wait()
    assert {task.status for task in ended} == {Status.COMPLETED, Status.FAILED, Status.CANCELLED}
    count = await batch.count()
    assert (count.ended, count.total, count.failed) == (3, 3, 2)
    async with thread.turn() as turn:
        texts = [message.text for message in turn.render()]
        await turn.ack()
    assert [f"{n} of 3 tasks" in text for n, text in enumerate(texts, 1)] == [True] * 3
    assert (await outside.get()).status is Status.RUNNING
    alone.finish()


@pytest.mark.behaviour("L24", "R17")
async def test_work_without_a_batch_joins_the_open_one(thread: Thread) -> None:
    """The open batch is the one that still has something running; with none, a new one begins."""
    first_job, first = await start(thread)
    second_job, second = await start(thread)
    assert first.task.batch == second.task.batch
    first_job.finish()
    await first.wait()
    third = await finished(thread)
    assert third.task.batch == first.task.batch
    second_job.finish()
    await second.wait()
    assert (await finished(thread)).task.batch != first.task.batch


@pytest.mark.behaviour("L24")
async def test_a_resumed_task_counts_as_running(thread: Thread, agents: FakeSessionRunner) -> None:
    batch = thread.batch("survey")
    handle = await batch.start(Agent("reader", "one"))
    await handle.wait()
    agents.hold()
    await thread.resume(handle, "two")
    assert (await batch.count()).active == 1
    agents.release()
    await handle.wait()
    assert (await batch.count()).ended == 1


@pytest.mark.behaviour("L24")
async def test_another_threads_batch_is_not_found(mt: Meantime, thread: Thread) -> None:
    await finished(thread, batch="survey")
    with pytest.raises(NotFound):
        await mt.thread("other").batch("survey").count()
    assert await mt.thread("other").batch("survey").list() == []


@pytest.mark.behaviour("L24")
async def test_a_batch_counts_what_its_thread_can_cancel(mt: Meantime, thread: Thread) -> None:
    """The same id in another thread is another batch; people see the tasks of both."""
    other = mt.thread("other")
    await start(thread, batch="survey")
    theirs, kept = await start(other, batch="survey")
    assert (await thread.batch("survey").count()).total == 1
    assert len(await thread.batch("survey").cancel()) == 1
    await thread.batch("survey").wait()
    count = await thread.batch("survey").count()
    assert (count.ended, count.total) == (1, 1)
    assert (await kept.get()).status is Status.RUNNING
    async with thread.turn() as turn:
        (notice,) = turn.notices
        assert (notice.batch.ended, notice.batch.total) == (1, 1)
        await turn.ack()
    assert len(await mt.list("all", batch="survey")) == 2
    theirs.finish()
    await kept.wait()


@pytest.mark.behaviour("L25", "R23")
async def test_manual_retry_is_refused(mt: Meantime, thread: Thread) -> None:
    """In every state, and nothing changes."""
    job, running = await start(thread)
    ended = await finished(thread, OSError("no"))
    before = await mt.list("all")
    for handle in (running, ended):
        with pytest.raises(RetryNotSupported, match="Manual retry is not supported"):
            await thread.retry(handle)
    assert await mt.list("all") == before
    job.finish()


@pytest.mark.behaviour("L26")
async def test_retryable_model_errors_stay_invisible(
    mt: Meantime, thread: Thread, agents: FakeSessionRunner
) -> None:
    """The ledger sees one run that completes; a refusal that no retry can mend is a failure."""
    agents.fail_requests(429, 500, 503)
    handle = await _ended_agent(thread)
    assert (await handle.get()).run == (await thread.runs(handle))[0].run
    assert (await handle.get()).run.attempt == 1
    assert len(await mt.notices("unread")) == 1
    agents.fail_requests(429, 403)
    refused = await _ended_agent(thread)
    assert (await refused.get()).outcome == Failed("The model answered HTTP 403.", "http_403")


@pytest.mark.behaviour("L26")
async def test_a_function_is_never_run_twice(thread: Thread) -> None:
    """Whatever it raises: at most once is the default (P3)."""
    ran: list[int] = []

    def fails() -> None:
        ran.append(1)
        raise ConnectionError("reset")

    await (await thread.start(Call(fails))).wait()
    assert ran == [1]


@pytest.mark.behaviour("L24")
@pytest.mark.embedded
async def test_work_without_a_batch_joins_the_batch_that_was_resumed(
    thread: Thread, agents: FakeSessionRunner, clock: FakeClock
) -> None:
    handle = await _ended_agent(thread)
    agents.hold()
    await thread.resume(handle, "two")
    other = await thread.start(Call(abs, -1))
    assert (await other.get()).batch == (await handle.get()).batch
    agents.release()
