"""Owners and workers that end and come back, and a carrier that loses, doubles, delays and forgets."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Call, Shell, Status
from meantime.app.system_clock import SystemClock
from meantime.carriers.memory import MemoryBroker, MessageFaults
from meantime.kernel.model import Chunk
from meantime.testing import FakeClock
from meantime.workers import worker_requests
from meantime.workers.messages import GrantedMessage, SendMessage, encode
from meantime.workers.sender_numbers import MOST_SENDERS, SenderNumbers

from . import jobs
from .conftest import PLACE, Site, ended

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
FAULTS = MessageFaults(loss=0.2, doubling=0.2, reordering=0.3, delay=0.5)


async def test_a_command_goes_on_when_its_worker_is_restarted(site: Site):
    mt = await site.open()
    await site.worker()
    line = f"echo begun; while [ ! -e {site.folder}/go ]; do sleep 0.05; done; echo done"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")

    async def has_begun() -> bool:
        return bool((await handle.log.read()).text)

    await until_async(has_begun, "the command has begun")
    await site.leave()
    await site.worker()
    (site.folder / "go").touch()
    task = await handle.wait(LIMIT)
    assert (task.status, task.run.attempt) == (Status.COMPLETED, 1)
    assert (await handle.log.read()).text == "begun\ndone\n"


async def test_a_function_is_lost_when_its_worker_is_restarted(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await site.leave()
    await site.worker()
    task = await handle.wait(LIMIT)
    assert task.status is Status.LOST
    assert "restarted" in str(task.outcome)


async def test_an_idempotent_function_runs_again_when_its_worker_is_restarted(site: Site):
    mt = await site.open()
    await site.worker()
    work = Call(jobs.once_then_quick, str(site.folder / "first"))
    handle = await mt.thread("a").start(work, place=PLACE, retry="idempotent")
    await until_async((site.folder / "first").exists, "the function has begun")
    await site.leave()
    await site.worker()
    assert await handle.result(LIMIT) == "quick"
    assert (await handle.get()).run.attempt == 2


async def test_a_task_that_ends_its_workers_is_given_up_after_three_losses(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE, retry="idempotent")
    for attempt in (1, 2, 3):
        await until_async(
            lambda attempt=attempt: any(
                run.task.run.attempt == attempt for run in site.workers["w1"].runs.values()
            ),
            f"attempt {attempt} has begun",
        )
        await site.leave()
        await site.worker()
    task = await handle.wait(LIMIT)
    assert (task.status, task.run.attempt) == (Status.LOST, 3)


async def test_a_task_may_end_as_many_workers_as_the_owner_allows(site: Site):
    mt = await site.open(worker_attempts=1)
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE, retry="idempotent")
    await until_async(lambda: len(site.workers["w1"].runs) == 1, "the worker has a run")
    await site.leave()
    await site.worker()
    task = await handle.wait(LIMIT)
    assert (task.status, task.run.attempt) == (Status.LOST, 1)


async def test_a_later_owner_follows_what_runs_at_a_worker(site: Site):
    mt = await site.open()
    worker = await site.worker()
    thread = mt.thread("a")
    command = await thread.start(Shell(f"while [ ! -e {site.folder}/go ]; do sleep 0.05; done"), place=PLACE)
    function = await thread.start(Call(jobs.waits_for, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: worker.state.running == 2, "two runs are under way")
    await site.close()
    (site.folder / "go").touch()
    await until_async(lambda: worker.state.running == 0, "both have ended, while nobody owns the ledger")
    mt = await site.open()
    for id in (command.id, function.id):
        task = await ended(mt, id)
        assert (task.status, task.run.attempt) == (Status.COMPLETED, 1)
    async with mt.thread("a").turn() as turn:
        assert len(turn.notices) == 2
        await turn.ack()
    await until_async(lambda: not worker.state.journal, "the worker has forgotten the run")


async def test_a_worker_that_stays_away_leaves_its_runs_lost(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    await site.lose()
    task = await handle.wait(LIMIT)
    assert task.status is Status.LOST
    assert "w1 sent nothing" in str(task.outcome)


async def test_while_the_carrier_is_down_nobody_is_lost(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.waits_for, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    site.broker.stop()
    site.pass_time(100.0)  # longer than lease and grace
    (site.folder / "go").touch()
    site.broker.start()
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED


async def test_output_is_copied_even_if_the_carrier_was_down_for_long_when_its_command_ended(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    """The worker has the only copy, and forgets it once the ending is recorded."""
    mt = await site.open()
    await site.worker()
    requests, clock = site.pools._requests, FakeClock()
    monkeypatch.setattr(requests, "_clock", clock)
    asked = asyncio.Event()
    read_file = requests.read_file

    async def cut(*given: Any) -> Chunk:
        if not asked.is_set():
            asked.set()
            site.broker.stop()
        return await read_file(*given)

    monkeypatch.setattr(requests, "read_file", cut)
    handle = await mt.thread("a").start(Shell("seq 1 100"), place=PLACE)
    await asyncio.wait_for(asked.wait(), LIMIT)
    await clock.advance(100.0)  # longer than lease and grace
    site.pass_time(100.0)
    site.broker.start()
    monkeypatch.setattr(requests, "_clock", SystemClock())
    await clock.advance(worker_requests.ASK_AGAIN)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    assert (await handle.log.read()).text.split() == [str(number) for number in range(1, 101)]


async def test_what_the_broker_forgot_is_offered_again(site: Site):
    mt = await site.open()
    worker = await site.worker()
    worker.is_draining = True  # it is there, and takes nothing
    await until_async(lambda: site.pools.about(), "the owner knows the worker")
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    site.broker.forget()
    worker.is_draining = False
    assert await handle.result(LIMIT) == 3


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_carrier_that_loses_and_doubles_breaks_no_promise(tmp_path: Path, seed: int):
    site = Site(tmp_path, MemoryBroker(SystemClock(), FAULTS, seed=seed, ack_wait=2.0))
    try:
        mt = await site.open()
        for name in ("w1", "w2", "w3"):
            await site.worker(name)
        thread = mt.thread("a")
        log = tmp_path / "log"
        handles = [
            await thread.start(
                Shell(f"echo {n} >> {log}") if n % 2 else Call(jobs.log_to, str(log), n), place=PLACE
            )
            for n in range(40)
        ]
        async with asyncio.timeout(LIMIT):
            for handle in handles:
                await handle.wait()
        assert {(await handle.get()).status for handle in handles} == {Status.COMPLETED}, f"seed {seed}"
        assert sorted(map(int, log.read_text().split())) == list(range(40))  # each was begun once
        told: list[str] = []
        while True:
            async with thread.turn() as turn:
                if not turn.notices:
                    break
                told += [notice.task_id for notice in turn.notices]
                await turn.ack()
        assert sorted(told) == sorted(handle.id for handle in handles)
    finally:
        for name in list(site.workers):
            await site.leave(name)
        await site.close()


async def test_what_the_owner_did_not_sign_is_not_begun(site: Site):
    """Somebody who can write to the broker puts an offer into the queue, and grants a claim."""
    await site.open()
    worker = await site.worker()
    await site.pools._carrier.add_pool("default")
    forged = b"w" + bytes(64) + encode(GrantedMessage(nonce="n", task=_task()))
    site.broker.put("default", "forged", bytes(64) + b'{"kind":"offer"}')
    site.broker.tell_worker("w1", forged)
    await until_async(lambda: site.broker.is_empty("default"), "the queue is empty")
    assert not worker.state.pending
    assert not worker.runs


async def test_a_worker_performs_only_functions_of_its_modules(site: Site):
    mt = await site.open()
    worker = await site.worker(tools=[])
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)

    async def is_left() -> bool:
        return not worker.state.pending and (await handle.get()).status is Status.QUEUED

    await stays_async(is_left, "it is not claimed, as it would be within milliseconds", 1.0)
    await handle.cancel()


async def test_commands_are_performed_only_where_they_are_allowed(site: Site):
    mt = await site.open()
    await site.worker("w1", shell=False)
    handle = await mt.thread("a").start(Shell("true"), place=PLACE)

    async def is_left() -> bool:
        return (await handle.get()).status is Status.QUEUED

    await stays_async(is_left, "it is not claimed", 0.5)
    await site.worker("w2")
    task = await handle.wait(LIMIT)
    assert task.run.claim is not None
    assert task.run.claim.worker == "w2"


async def test_two_workers_cannot_share_a_home(site: Site):
    from meantime import LedgerBusy

    await site.open()
    await site.worker("w1")
    with pytest.raises(LedgerBusy, match="Another worker uses"):
        await site.worker("w1")


def _task():
    from meantime.kernel.model import Run, Task, Work

    return Task(id="t_x", thread="a", work=Work("shell", "x", {}), status=Status.RUNNING, run=Run())


async def test_an_owner_without_a_carrier_leaves_placed_runs_to_one_that_has_it(site: Site):
    from meantime import Meantime

    mt = await site.open()
    worker = await site.worker()
    handle = await mt.thread("a").start(Call(jobs.waits_for, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: worker.state.running == 1, "the run is under way")
    await site.close()
    async with Meantime.open(site.folder / "work.db", durability="fast") as without:
        assert (await without.get(handle.id)).status is Status.RUNNING
    (site.folder / "go").touch()
    mt = await site.open()
    task = await ended(mt, handle.id)
    assert (task.status, task.run.attempt) == (Status.COMPLETED, 1)


async def test_a_later_owner_can_send_to_a_command(site: Site):
    mt = await site.open()
    worker = await site.worker()
    handle = await mt.thread("a").start(Shell("read x; read y; echo $x $y", open_stdin=True), place=PLACE)
    await until_async(lambda: worker.state.running == 1, "the run is under way")
    await handle.send("one\n")
    await site.close()
    mt = await site.open()
    await mt.send(handle.id, "two\n")
    await ended(mt, handle.id)
    assert (await mt.log(handle.id).read()).text == "one two\n"


async def test_an_owner_whose_clock_was_turned_back_can_send_to_a_command(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    """The worker writes each send once, and goes by the owner's life and its count, not by a clock."""
    mt = await site.open()
    worker = await site.worker()
    handle = await mt.thread("a").start(Shell("read x; read y; echo $x $y", open_stdin=True), place=PLACE)
    await until_async(lambda: worker.state.running == 1, "the run is under way")
    await handle.send("one\n")
    await site.close()
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: now() - 3_600))
    mt = await site.open()
    await mt.send(handle.id, "two\n")
    await ended(mt, handle.id)
    assert (await mt.log(handle.id).read()).text == "one two\n"


async def test_a_send_that_is_repeated_is_written_once(site: Site):
    mt = await site.open()
    worker = await site.worker()
    handle = await mt.thread("a").start(Shell("cat", open_stdin=True), place=PLACE)
    await until_async(lambda: worker.state.running == 1, "the run is under way")
    (run,) = worker.runs.values()
    first = SendMessage(ask="a", nonce=run.granted.nonce, number=7, data=b"one\n", sender="owner-1")
    for message in (
        first,
        first,
        replace(first, number=6),
        replace(first, sender="owner-2", number=1),
        first,
    ):
        assert (await run.answer(message)).error is None
    await handle.send("", eof=True)
    await handle.wait(LIMIT)
    assert (await handle.log.read()).text == "one\none\n"  # of each owner one


async def test_a_worker_whose_clock_was_turned_back_still_reports_progress(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    """Lists at the owner show the last line of a command, of the worker's earlier life and of this one."""
    mt = await site.open()
    await site.worker()
    line = f"echo before; while [ ! -e {site.folder}/go ]; do sleep 0.05; done; echo after; sleep 600"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    task = await handle.get()
    await until_async(lambda: site.pools.last_line(task)[0] == "before", "the line is known")
    await site.leave()
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: now() - 3_600))
    await site.worker()
    (site.folder / "go").touch()
    await until_async(lambda: site.pools.last_line(task)[0] == "after", "the next line is known")
    await handle.cancel(wait=True)


def test_senders_that_are_remembered_have_a_limit():
    numbers = SenderNumbers()
    for life in range(MOST_SENDERS + 1):
        numbers.note(f"life-{life}", 5)
    assert numbers.is_new("life-0", 1)
    assert not numbers.is_new("life-1", 5)
    assert numbers.is_new("life-1", 6)


async def test_a_run_that_was_left_behind_is_acknowledged_when_it_ends(site: Site):
    mt = await site.open(stop_grace=0.1, stop_deadline=0.3)
    worker = await site.worker()
    handle = await mt.thread("a").start(Call(jobs.deaf, str(site.folder / "go")), place=PLACE)
    await until_async(lambda: worker.state.running == 1, "the run is under way")
    task = (await handle.cancel(wait=True)).task
    assert "abandoned=True" in str(task.outcome)
    (site.folder / "go").touch()
    await until_async(lambda: not worker.state.journal, "the worker has forgotten the run")
    assert (await handle.get()).late_result == "at last"


async def test_a_command_that_was_cancelled_while_its_worker_was_away_is_stopped_when_it_returns(site: Site):
    """The owner gives it up after the stop's deadline. Nobody may leave it running, even long afterwards."""
    mt = await site.open(stop_grace=0.2, stop_deadline=0.5)
    await site.worker()
    ticks = site.folder / "ticks"
    handle = await mt.thread("a").start(Shell(f"while :; do date >> {ticks}; sleep 0.05; done"), place=PLACE)
    await until_async(ticks.exists, "the command runs")
    await site.leave()
    await handle.cancel()
    assert (await handle.wait(LIMIT)).status is Status.CANCELLED
    await site.forget()
    worker = await site.worker()
    await until_async(lambda: not worker.state.journal, "the worker has forgotten the run")
    size = ticks.stat().st_size
    await stays_async(lambda: ticks.stat().st_size == size, "the command is stopped")
    assert (await handle.get()).status is Status.CANCELLED


async def test_a_stop_that_comes_before_the_run_is_under_way_stops_it(site: Site):
    """A worker that returns reports its runs at once, and is told to stop one before it follows it again."""
    mt = await site.open()
    worker = await site.worker()
    handle = await mt.thread("a").start(Shell("sleep 600"), place=PLACE)
    await until_async(lambda: worker.runs, "the worker has a run")
    nonce = next(iter(worker.runs))
    await site.leave()
    worker = await site.worker()
    worker.runs[nonce].stop(1)  # in the same turn of the loop: nothing of it is followed yet
    assert (await handle.wait(LIMIT)).ended


async def test_a_worker_that_drains_claims_nothing_even_if_it_was_waiting_for_offers(site: Site):
    mt = await site.open()
    worker = await site.worker()
    await mt.thread("a").start(Call(jobs.add, 1, 1), place=PLACE)  # the queue is made, and it waits there
    await until_async(
        lambda: not worker.state.journal and not worker.state.pending, "the worker has forgotten the run"
    )
    worker.is_draining = True
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
    other = await site.worker("w2")
    assert await handle.result(LIMIT) == 3
    task = await handle.get()
    assert task.run.claim is not None
    assert task.run.claim.worker == other._carrier.worker


async def test_a_worker_that_drains_waits_until_its_runs_ended_and_were_acknowledged(site: Site):
    mt = await site.open()
    worker = await site.worker()
    go = site.folder / "go"
    work = Shell(f"while [ ! -e {go} ]; do sleep 0.05; done")
    handle = await mt.thread("a").start(work, place=PLACE)
    await until_async(lambda: worker.runs, "the worker has a run")
    draining = asyncio.create_task(worker.drain(LIMIT))
    await until_async(
        lambda: all(one.draining for one in site.pools.about()), "the owner knows that it drains"
    )
    assert not draining.done()
    go.touch()
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    await asyncio.wait_for(draining, LIMIT)
    assert not worker.state.journal


async def test_a_command_that_outlasts_the_draining_is_followed_by_the_next_life(site: Site):
    mt = await site.open()
    worker = await site.worker()
    go = site.folder / "go"
    work = Shell(f"while [ ! -e {go} ]; do sleep 0.05; done; echo whole")
    handle = await mt.thread("a").start(work, place=PLACE)
    await until_async(lambda: worker.runs, "the worker has a run")
    await asyncio.wait_for(worker.drain(0.1), LIMIT)
    assert worker.state.journal
    await site.leave()
    await site.worker()
    go.touch()
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    assert (await handle.log.read()).text == "whole\n"
