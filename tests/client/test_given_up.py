"""P2: a run that was given up may still say something. It is kept beside the ending, which stays."""

from __future__ import annotations

import pytest
from tests.waiting import until_async

from jobs import Job, start
from meantime import Lost, Status
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable
from meantime.testing import FakeClock
from runtimes import runtime_of

from .pair import Pair

pytestmark = pytest.mark.anyio
GRACE = 30.0  # seconds, as Settings has it


async def give_up(pair: Pair) -> tuple[Job, str]:
    """A job whose process was away for too long, and is here again: it still runs."""
    clock = FakeClock()
    await pair.owner.close()
    await pair.open_owner(clock)
    await until_async(pair.is_up, "it is connected again")
    job, handle = await start(pair.mt.thread("a"))
    pair.client._connection._connect, connect = _nobody, pair.client._connection._connect
    pair.cut()
    await clock.advance_to_alarm(GRACE)
    await until_async(lambda: _is(pair, handle.id, Status.LOST), "its run is lost")
    pair.client._connection._connect = connect
    await until_async(pair.is_up, "it is connected again")
    return job, handle.id


async def _nobody() -> None:
    raise ConnectionRefusedError


async def _is(pair: Pair, id: str, status: Status) -> bool:
    return (await pair.owner.get(id)).status is status


@pytest.mark.behaviour("P2")
async def test_a_result_after_the_run_was_lost_is_kept_beside_the_ending(pair: Pair):
    job, id = await give_up(pair)
    job.finish({"found": 3})
    await until_async(lambda: not pair.held(), "its process holds no function any more")
    task = await pair.owner.get(id)
    assert task.late_result == {"found": 3}
    assert isinstance(task.outcome, Lost)
    assert len(await pair.owner.notices()) == 1


@pytest.mark.behaviour("P2")
async def test_a_late_result_is_kept_when_the_next_owner_hears_of_it(pair: Pair):
    job, id = await give_up(pair)
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    job.finish(5)
    await pair.open_owner()
    await until_async(lambda: not pair.held(), "its process holds no function any more")
    task = await pair.owner.get(id)
    assert (task.status, task.late_result) == (Status.LOST, 5)


@pytest.mark.behaviour("P2")
async def test_nobody_elses_word_is_kept(pair: Pair):
    """A process that never had the task cannot write into it."""
    _, id = await give_up(pair)
    (known,) = pair.executors._known
    keep_late = runtime_of(pair.owner).runs.keep_late

    await keep_late(id, "x_other", (1, 1), Report(result=jsonable("forged")))
    await keep_late(id, known, (1, 2), Report(result=jsonable("of another run")))
    assert (await pair.owner.get(id)).late_result is None


@pytest.mark.behaviour("P2")
async def test_an_ending_that_is_said_twice_is_not_late(pair: Pair):
    """Only the word that it was heard was lost: the same result is not kept a second time."""
    job, handle = await start(pair.mt.thread("a"))
    heard = pair.client._executor.acknowledged
    pair.client._executor.acknowledged = lambda frame: None
    job.finish(5)
    await handle.wait()
    pair.client._executor.acknowledged = heard
    await pair.cut_and_back()
    await until_async(lambda: not pair.held(), "its process holds no function any more")
    task = await handle.get()
    assert (task.status, task.late_result) == (Status.COMPLETED, None)
