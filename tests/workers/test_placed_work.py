"""Functions and commands that run at a worker: the same verbs, the same endings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Call, InvalidInput, Shell, Status, Task
from meantime.carriers.memory import MemoryBroker
from meantime.kernel.row_facts import now_line

from . import jobs
from .conftest import JOBS, PLACE, Site

pytestmark = pytest.mark.anyio
SECRET = "hunter2-of-the-test"


def field(task: Task, name: str) -> Any:
    """Of its outcome, whichever that is."""
    return getattr(task.outcome, name)


async def test_a_function_runs_at_a_worker_and_its_thread_is_told_once(site: Site):
    mt = await site.open()
    await site.worker("w7")
    thread = mt.thread("a")
    handle = await thread.start(Call(jobs.add, 1, 2), place=PLACE)
    task = await handle.wait(LIMIT)
    assert (task.status, await handle.result()) == (Status.COMPLETED, 3)
    assert task.run.claim is not None
    assert task.run.claim.worker == "w7"
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [task.id]
        await turn.ack()
    await until_async(lambda: not site.workers["w7"].state.journal, "the ending was acknowledged")


async def test_offered_work_is_queued_until_a_worker_claims_it(site: Site):
    mt = await site.open()
    handle = await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE, timeout=LIMIT)
    task = await handle.get()
    assert (task.status, task.run.started_at) == (Status.QUEUED, None)
    await site.worker()
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED


async def test_what_is_cancelled_before_it_is_claimed_is_never_begun(site: Site):
    mt = await site.open()
    handle = await mt.thread("a").start(Shell(f"touch {site.folder}/begun"), place=PLACE)
    await handle.cancel()
    assert (await handle.get()).status is Status.CANCELLED
    await site.worker()
    again = await mt.thread("a").start(Call(jobs.add, 1, 1), place=PLACE)
    await again.wait(LIMIT)
    assert not (site.folder / "begun").exists()


async def test_an_error_has_its_text_and_its_traceback(site: Site):
    mt = await site.open()
    await site.worker()
    task = await (await mt.thread("a").start(Call(jobs.fail, "too hot"), place=PLACE)).wait(LIMIT)
    assert task.status is Status.FAILED
    assert "too hot" in str(task.outcome)
    assert "ValueError" in str(task.outcome)


async def test_a_result_that_no_message_can_hold_arrives_in_parts(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.big, 3_000_000), place=PLACE)
    assert await handle.result() == "x" * 3_000_000


async def test_progress_and_emitted_values_are_relayed(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.emits), place=PLACE)
    task = await handle.wait(LIMIT)
    assert task.progress is not None
    assert task.progress.message == "half"
    assert field(task, "emitted_vars") == {"color": "blue"}


async def test_a_question_waits_for_its_answer(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(jobs.asks), place=PLACE)

    async def asks() -> bool:
        return (await handle.get()).status is Status.WAITING

    await until_async(asks, "it asks")
    await mt.answer(handle.id, "red")
    assert await handle.result() == "chose red"


@pytest.mark.parametrize("function", [jobs.forever, jobs.patient])
async def test_a_function_is_cancelled(site: Site, function):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Call(function), place=PLACE)
    await until_async(lambda: _message(mt, handle.id), "the function has begun")
    answer = await handle.cancel(wait=True)
    assert answer.task.status is Status.CANCELLED


def _message(mt, id: str) -> str:
    task = mt._runtime.runs.seen(mt._runtime.record.live[id])
    return task.progress.message if task.progress else ""


async def test_a_timeout_begins_with_the_claim(site: Site):
    mt = await site.open()
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE, timeout=0.3)

    async def waits() -> bool:
        return (await handle.get()).status is Status.QUEUED

    await stays_async(waits, "it waits for a worker, for longer than its timeout", 0.6)
    await site.worker()
    task = await handle.wait(LIMIT)
    assert task.status is Status.TIMED_OUT
    assert task.run.duration is not None


# -- what cannot be placed


async def test_a_closure_is_refused_at_the_start(site: Site):
    mt = await site.open()

    def local() -> None: ...

    for function in (local, lambda: None):
        with pytest.raises(InvalidInput, match="find a function by module and name") as caught:
            await mt.thread("a").start(Call(function), place=PLACE)
        assert "tools" in caught.value.hint


async def test_arguments_that_are_not_json_are_refused_at_the_start(site: Site):
    mt = await site.open()
    with pytest.raises(InvalidInput, match="not JSON"):
        await mt.thread("a").start(Call(jobs.any_value, object()), place=PLACE)


async def test_a_place_without_a_carrier_is_refused(tmp_path: Path):
    from meantime import Meantime

    async with Meantime.open(":memory:") as mt:
        with pytest.raises(InvalidInput, match="There are no workers") as caught:
            await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE)
        assert "carrier" in caught.value.hint


async def test_a_call_that_somebody_waits_for_cannot_be_placed(site: Site):
    mt = await site.open()
    with pytest.raises(InvalidInput, match="runs here"):
        await mt.thread("a").call(Call(jobs.add, 1, 2), place=PLACE)


# -- commands


async def test_a_command_runs_at_a_worker_with_its_variables_and_stdin(site: Site):
    mt = await site.open()
    await site.worker()
    line = "cat; echo $SECRET; pwd; exit 3"
    work = Shell(line, env={"SECRET": SECRET}, stdin=SECRET + "-stdin\n", cwd=site.folder)
    handle = await mt.thread("a").start(work, place=PLACE)
    task = await handle.wait(LIMIT)
    assert task.status is Status.FAILED
    assert field(task, "exit_code") == 3
    out = (await handle.log.read()).text
    assert out.splitlines() == [f"{SECRET}-stdin", SECRET, str(site.folder)]


async def test_the_output_of_a_running_command_is_read_from_its_worker(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(
        Shell("echo one; read x; echo got $x; echo wrong >&2; read y", open_stdin=True), place=PLACE
    )
    log = handle.log
    got = b""
    async for chunk in log.follow():
        got += chunk.data
        if b"one\n" in got and b"got" not in got:
            await handle.send("hello\n")
        if b"wrong" in got:
            assert (await log.tail(1, stream="stderr")).text == "wrong\n"
            await handle.send("", eof=True)
    assert got == b"one\ngot hello\nwrong\n"
    assert (await handle.wait(LIMIT)).ended


async def test_the_whole_output_is_with_the_owner_before_the_worker_forgets_it(site: Site):
    mt = await site.open()
    await site.worker()
    handle = await mt.thread("a").start(Shell("seq 1 40000"), place=PLACE)
    assert (await handle.wait(LIMIT)).status is Status.COMPLETED
    await until_async(lambda: not site.workers["w1"].state.journal, "the worker has forgotten the run")
    files = [file.name for file in (site.folder / "home-w1" / "commands").iterdir()]
    assert not [name for name in files if name.endswith((".out", ".state", ".txt"))]
    await site.leave()
    whole = await handle.result()
    assert whole.splitlines() == [str(number) for number in range(1, 40_001)]
    assert (await handle.log.tail(1)).text == "40000\n"


async def test_a_command_that_ignores_a_cancel_is_killed_after_the_grace(site: Site):
    mt = await site.open(stop_grace=0.3, stop_deadline=LIMIT)
    await site.worker()
    line = f"trap '' TERM; echo $$ > {site.folder}/pid; echo said; while :; do sleep 0.1; done"
    handle = await mt.thread("a").start(Shell(line), place=PLACE)
    await until_async(
        lambda: (site.folder / "pid").exists() and (site.folder / "pid").read_text().strip(),
        "the command runs",
    )
    task = (await handle.cancel(wait=True)).task
    assert task.status is Status.CANCELLED
    assert not field(task, "abandoned")
    with pytest.raises(ProcessLookupError):
        os.kill(int((site.folder / "pid").read_text()), 0)


async def test_no_secret_is_on_any_disk_or_in_the_queue(site: Site):
    mt = await site.open()
    handle = await mt.thread("a").start(
        Shell("sleep 600", env={"SECRET": SECRET}, stdin=b"\xff" + SECRET.encode()), place=PLACE
    )
    offers: list[bytes] = []
    take = MemoryBroker.take

    def seen(broker: MemoryBroker, pool: str, free: int):
        found = take(broker, pool, free)
        offers.extend(one.data for one in found)
        return found

    site.broker.take = seen.__get__(site.broker)  # type: ignore[method-assign]
    await site.worker()
    await until_async(lambda: site.workers["w1"].runs, "the worker has a run")
    for file in site.folder.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file
    assert offers
    assert not any(SECRET.encode() in offer for offer in offers)
    await handle.cancel(wait=True)


# -- limits


async def test_work_of_a_pool_does_not_use_the_slots_of_this_machine(site: Site):
    from meantime import Limits

    mt = await site.open(limits=Limits(total=1))
    await site.worker(slots=2)
    thread = mt.thread("a")
    there = [await thread.start(Call(jobs.forever), place=PLACE) for _ in range(3)]
    here = await thread.start(Shell("true"))
    assert (await here.wait(LIMIT)).status is Status.COMPLETED
    await until_async(lambda: site.workers["w1"].state.running == 2, "two runs are under way")
    statuses = sorted([(await one.get()).status.value for one in there])
    assert statuses == ["queued", "running", "running"]
    await thread.cancel_all()


async def test_a_place_can_be_configured_by_kind_and_by_name(site: Site):
    mt = await site.open(place={"call": "here", f"call:{JOBS}:*": PLACE})
    await site.worker()
    placed = await mt.thread("a").start(Call(jobs.add, 1, 2))
    here = await mt.thread("a").start(Call(os.getpid))
    named = await mt.thread("a").start(Call(jobs.add, 1, 2), place="here")
    assert (await placed.wait(LIMIT)).place == PLACE
    assert (await here.wait(LIMIT)).place == ""
    assert (await named.wait(LIMIT)).place == ""


async def test_a_list_says_which_worker_performs_a_task_or_that_none_does(site: Site):
    mt = await site.open()
    handle = await mt.thread("a").start(Call(jobs.forever), place=PLACE)

    async def line() -> str:
        (facts,) = await mt._runtime.row_facts([handle.id])
        return now_line(await handle.get(), facts)

    assert await line() == "waits: there is no worker of pool default"
    await site.worker("w7")

    async def is_performed() -> bool:
        return "waiting" in await line()

    await until_async(is_performed, "the function is performed")
    assert await line() == "on w7 · waiting"
    assert (await mt.stats())["workers.claimed"] == 1
    await handle.cancel()
