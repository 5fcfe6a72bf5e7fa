"""Stopping, clearing, deleting."""

from __future__ import annotations

from meantime.kernel.change import Disposition
from meantime.kernel.errors import InvalidInput, NotFound
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Limits
from meantime.kernel.model import Cancelled
from meantime.ports.tasks import Options, Tasks

from ..suite.patience import within
from .sample_work import Check, Gate, command, ended, refused, start


async def a_cancel_stops_a_function_and_says_who_asked(tasks: Tasks) -> None:
    gate = Gate()
    task = await tasks.start("a", gate.order(), Options())
    await within(gate.started.wait())
    answer = await within(tasks.cancel(task.id, "a", by="tester", reason="enough", wait=True))
    assert answer.disposition is Disposition.APPLIED
    assert gate.stopped
    assert isinstance(answer.task.outcome, Cancelled), answer.task.outcome
    assert (answer.task.outcome.by, answer.task.outcome.reason) == ("tester", "enough")


async def a_second_cancel_is_harmless(tasks: Tasks) -> None:
    task = await ended(tasks)
    answer = await within(tasks.cancel(task.id, "a", wait=True))
    assert answer.disposition is Disposition.ALREADY_ENDED
    assert answer.task.status is Status.COMPLETED


async def a_cancel_ends_a_command(tasks: Tasks) -> None:
    task = await command(tasks, "sleep 1000")
    answer = await within(tasks.cancel(task.id, "a", wait=True))
    assert answer.task.status is Status.CANCELLED


async def what_is_queued_is_cancelled_at_once(tasks: Tasks) -> None:
    await tasks.set_limits(Limits(per_thread=1))
    gate = Gate()
    await tasks.start("a", gate.order(), Options())
    queued = await start(tasks)
    answer = await within(tasks.cancel(queued.id, "a", wait=True))
    assert answer.task.status is Status.CANCELLED
    gate.open()


async def all_of_a_thread_are_cancelled_and_no_others(tasks: Tasks) -> None:
    gates = [Gate(), Gate(), Gate()]
    started = [
        await tasks.start("aab"[number], gate.order(), Options(batch=f"batch-{number}"))
        for number, gate in enumerate(gates)
    ]
    assert len(await tasks.cancel_all("a", batch="batch-0")) == 1
    assert len(await tasks.cancel_all("a")) >= 1
    found = await within(tasks.wait([started[0].id, started[1].id], "a"))
    assert {task.status for task in found} == {Status.CANCELLED}
    assert (await tasks.get(started[2].id, "b")).status is Status.RUNNING
    gates[2].open()


async def a_timeout_stops_a_function(tasks: Tasks) -> None:
    gate = Gate()
    task = await tasks.start("a", gate.order(), Options(timeout=0.05))
    (task,) = await within(tasks.wait([task.id], "a"))
    assert task.status is Status.TIMED_OUT
    assert gate.stopped or not gate.started.is_set()


async def what_is_cleared_is_hidden_and_what_is_purged_is_gone(tasks: Tasks) -> None:
    task = await ended(tasks)
    assert await tasks.clear("a", [task.id]) == 1
    assert not await tasks.list("a", [Status.COMPLETED])
    assert (await tasks.get(task.id, "a")).hidden
    await refused(InvalidInput, tasks.clear("a", older_than=-1.0))
    assert await tasks.purge([task.id]) == 1
    await refused(NotFound, tasks.get(task.id, None))


CHECKS: tuple[Check, ...] = (
    a_cancel_stops_a_function_and_says_who_asked,
    a_second_cancel_is_harmless,
    a_cancel_ends_a_command,
    what_is_queued_is_cancelled_at_once,
    all_of_a_thread_are_cancelled_and_no_others,
    a_timeout_stops_a_function,
    what_is_cleared_is_hidden_and_what_is_purged_is_gone,
)
