"""The connection breaks, or the owner goes and comes back: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT, until_async

from jobs import Job, finished
from meantime import Call, Disconnected, LimitReached, NotFound, current
from meantime.client import owner_connection
from meantime.link.frames import Ping
from outcomes import completed
from runtimes import client_of

from .pair import Pair, impatient

pytestmark = pytest.mark.anyio


async def test_a_function_goes_on_and_its_ending_counts_once(pair: Pair):
    job = Job()
    handle = await pair.mt.thread("a").start(job.call)
    await job.started.wait()
    pair.cut()
    job.finish(5)
    assert await handle.result() == 5
    assert job.executions == 1
    await until_async(lambda: not pair.held(), "its process holds no function any more")
    async with pair.mt.thread("a").turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [handle.id]
        await turn.ack()


async def test_a_call_outlasts_a_broken_connection_as_a_task(pair: Pair):
    """Nobody stopped it, so it is not stopped; nobody can say when its answer would come, so it is a task."""
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    await pair.cut_and_back()
    answer = await calling
    assert answer.mode == "background"
    assert not job.asked_to_stop.is_set()
    job.finish(5)
    assert answer.task is not None
    (task,) = await pair.mt.thread("a").wait(answer.task)
    assert (completed(task).result, job.executions) == (5, 1)
    await until_async(lambda: not pair.held() and not pair.runs(), "nobody holds the function any more")


async def test_a_call_outlasts_its_owner_as_a_task(pair: Pair):
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    await pair.owner.close()
    await pair.open_owner()
    answer = await calling
    assert answer.mode == "background"
    job.finish(5)
    assert answer.task is not None
    (task,) = await pair.mt.thread("a").wait(answer.task)
    assert (completed(task).result, job.executions, job.asked_to_stop.is_set()) == (5, 1, False)
    await until_async(lambda: not pair.held(), "its process holds no function any more")


async def test_a_call_that_ended_meanwhile_has_its_answer(pair: Pair):
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    pair.cut()
    job.finish(5)
    answer = await calling
    if answer.mode == "background":  # the owner was quicker to hear of it than we
        assert answer.task is not None
        await pair.mt.thread("a").wait(answer.task)
        assert await pair.mt.thread("a").result(answer.task) == 5
    else:
        assert answer.result == 5
    await until_async(lambda: not pair.held() and not pair.runs(), "nobody holds the function any more")


async def test_a_call_that_no_owner_takes_as_a_task_is_waited_for_as_it_is(pair: Pair):
    job, refused = Job(), asyncio.Event()
    asked = pair.client._answer

    async def full(question):
        if question.verb.name == "adopt":
            refused.set()
            raise LimitReached("Too many.", running=1, limit=1)
        return await asked(question)

    calling = asyncio.create_task(pair.mt.thread("a").call(job.call, on_limit="reject"))
    await job.started.wait()
    pair.client._answer = full
    await pair.owner.close()
    await pair.open_owner()
    await asyncio.wait_for(refused.wait(), LIMIT)
    job.finish(5)
    assert (await asyncio.wait_for(calling, LIMIT)).result == 5
    await until_async(lambda: not pair.held(), "its process holds no function any more")


async def test_an_ending_before_its_adoption_is_said_again(pair: Pair):
    """The owner asks for a run that is over: it is told so again, or it would wait for ever."""
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    await pair.owner.close()
    asked = pair.client._answer

    async def ended_first(question):
        if question.verb.name == "adopt":
            job.finish(5)
            await until_async(lambda: not pair.client._executor.running(), "the function has ended")
        return await asked(question)

    pair.client._answer = ended_first
    await pair.open_owner()
    answer = await calling
    assert answer.mode == "background"
    assert answer.task is not None
    (task,) = await asyncio.wait_for(pair.mt.thread("a").wait(answer.task), LIMIT)
    assert completed(task).result == 5
    await until_async(lambda: not pair.held(), "its process holds no function any more")


@pytest.mark.parametrize("lost", ["promote", "get"])
async def test_a_call_that_was_made_a_task_is_not_answered_as_well(pair: Pair, lost: str):
    """The connection breaks again before that is heard; or the owner makes it one between two questions."""
    job, asked, times = Job(), pair.client._answer, 0

    async def in_between(question):
        nonlocal times
        if question.verb.name != lost or times:
            return await asked(question)
        times += 1
        if lost == "promote":
            await asked(question)
            raise Disconnected("Nobody knows.", code="in_doubt")
        with pytest.raises(NotFound):
            await asked(question)
        await pair.owner.promote((await pair.owner.calls())[0].id)
        job.finish(5)
        await until_async(lambda: not pair.runs(), "the owner waits for no run any more")
        raise NotFound("It was none when it was asked for.")

    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    pair.client._answer = in_between
    await pair.cut_and_back()
    answer = await asyncio.wait_for(calling, LIMIT)
    assert answer.mode == "background"
    job.finish(5)
    (task,) = await pair.owner.thread("a").wait(answer.task.id, timeout=LIMIT)
    assert (completed(task).result, job.executions) == (5, 1)


@pytest.mark.behaviour("P1")
async def test_a_call_is_not_taken_for_a_task_whose_id_begins_with_its_own(pair: Pair):
    """The owner takes prefixes of ids. A call that was lost with it before it ran has no task yet, even if
    `job-61` is one."""
    other = await pair.mt.thread("a").start(Call(int, "1"), id="job-61")
    await other.wait()
    asked, asked_for = pair.client._answer, []

    async def lost_once(question):
        asked_for.append(question.verb.name)
        if question.verb.name == "call" and asked_for.count("call") == 1:
            raise Disconnected("Nobody knows.", code="in_doubt")
        return await asked(question)

    pair.client._answer = lost_once
    answer = await asyncio.wait_for(pair.mt.thread("a").call(Call(int, "5"), id="job-6"), LIMIT)

    assert (answer.mode, answer.result) == ("synchronous", 5)
    assert "promote" not in asked_for


@pytest.mark.behaviour("F11")
async def test_a_handle_means_its_own_task_alone(pair: Pair):
    """A task that was purged is not found: its handle never turns to one whose id begins like its own."""
    thread, job = pair.mt.thread("a"), Job()
    gone = await thread.start(Call(int, "1"), id="job-6")
    await gone.wait()
    await thread.start(job.call, id="job-61")
    await job.started.wait()
    await pair.mt.purge("job-6")

    for verb in (gone.get, gone.wait, gone.result, gone.output, gone.cancel, gone.send):
        with pytest.raises(NotFound, match="job-6"):
            await verb()
    assert not job.asked_to_stop.is_set()
    job.finish(1)


async def test_what_was_said_meanwhile_is_said_again(pair: Pair):
    said, go = asyncio.Event(), asyncio.Event()

    async def work():
        said.set()
        await go.wait()
        current().progress(50, phase="half")
        said.set()
        await asyncio.Event().wait()

    handle = await pair.mt.thread("a").start(Call(work))
    await said.wait()
    said.clear()
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    go.set()
    await said.wait()
    await pair.open_owner()

    async def is_known() -> bool:
        progress = (await handle.get()).progress
        return progress is not None and progress.phase == "half"

    await until_async(is_known, "the progress is known")


async def test_a_turn_outlasts_a_broken_connection(pair: Pair):
    handle = await finished(pair.mt.thread("a"))
    async with pair.mt.thread("a").turn() as turn:
        await pair.cut_and_back()
        assert [notice.task_id for notice in turn.notices] == [handle.id]
        await turn.ack()
    assert not pair.turns
    assert await pair.mt.notices() == []


async def test_a_turn_whose_answer_was_lost_is_given_back(pair: Pair):
    handle = await finished(pair.mt.thread("a"))
    for rounds in range(30):
        opening = asyncio.create_task(pair.client.open_turn("a", lease=None, limit=10))
        for _ in range(rounds):
            await asyncio.sleep(0)
        await pair.cut_and_back()
        await pair.client.close_turn((await opening).id, failed=False)
    await until_async(lambda: not pair.turns, "no turn is open")
    told: list[str] = []

    async def is_told() -> bool:
        """An opening that was under way may hold it once more, and is given back, too."""
        async with pair.mt.thread("a").turn() as turn:
            told.extend(notice.task_id for notice in turn.notices)
            await turn.ack()
        return bool(told)

    await until_async(is_told, "it is told")
    assert told == [handle.id]


async def test_an_owner_that_says_nothing_counts_as_lost(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    """It may be stopped: its socket stays open for ever, and whoever asks would wait for ever."""
    (link,) = pair.owner._link._links
    monkeypatch.setattr(link.wire, "_received", lambda frame: None)
    wire = pair.client._connection._wire
    pair.client._connection._pinging.cancel()
    pair.client._connection._ping(wire, 0.01)
    assert await asyncio.wait_for(pair.mt.stats(), LIMIT)
    assert pair.client._connection._wire is not wire


async def test_an_owner_that_lives_is_not_lost_however_slow_we_are(pair: Pair):
    wire = pair.client._connection._wire
    pair.client._connection._pinging.cancel()
    pair.client._connection._ping(wire, 0.01)
    heard = []
    inner = wire._received
    wire._received = lambda frame: (heard.append(frame), inner(frame))
    await until_async(
        lambda: sum(isinstance(frame, Ping) for frame in heard) > 3 * owner_connection.PINGS,
        "many pings were answered",
    )
    assert pair.client._connection._wire is wire


async def test_a_start_that_never_left_is_not_held(pair: Pair):
    async with impatient(pair.link) as mt:
        await pair.owner.close()
        await until_async(lambda: not client_of(mt)._connection.is_up, "the connection is lost")
        for _ in range(3):
            with pytest.raises(Disconnected, match="did not answer"):
                await mt.thread("a").start(Call(int, "1"))
        assert not client_of(mt)._executor._held
    await pair.open_owner()


async def test_too_much_at_once_is_refused_and_nothing_else_suffers(pair: Pair, monkeypatch):
    """It would be cut off, and asked again, for ever."""
    from meantime import InvalidInput, Message, Part
    from meantime.ports.store import Entry

    monkeypatch.setattr(owner_connection, "MAX_FRAME", 100_000)
    entry = Entry(Message("user", (Part("x" * 100_000),)), None)
    with pytest.raises(InvalidInput, match="go over the socket") as caught:
        await pair.client.append("a", [entry])
    assert caught.value.code == "too_big"
    assert await pair.mt.stats()
