"""Inline or job: one answer, and never executed twice."""

from __future__ import annotations

import asyncio

from meantime.kernel.errors import Duplicate, NotFound, Refused, TaskTimedOut
from meantime.kernel.work import Call
from meantime.ports.tasks import Options, Tasks

from ..suite.patience import until, within
from .sample_work import Check, Gate, emit, ended, give, refused, throw


async def a_quick_call_is_answered(tasks: Tasks) -> None:
    answer = await within(tasks.call("a", Call(give, {"x": 1}).order(), Options(), None))
    assert (answer.mode, answer.result, answer.task) == ("synchronous", {"x": 1}, None)
    assert not await tasks.list("a", None)


async def a_quick_call_has_its_id_and_what_was_emitted(tasks: Tasks) -> None:
    answer = await within(tasks.call("a", Call(emit, "files", 3).order(), Options(id="named"), None))
    assert answer.ending is not None
    assert (answer.ending.id, answer.ending.emitted) == ("named", {"files": 3})


async def a_call_raises_what_its_function_raised(tasks: Tasks) -> None:
    raised: list[BaseException] = []
    try:
        await within(tasks.call("a", Call(throw, "mine").order(), Options(), None))
    except Exception as problem:
        raised.append(problem)
    assert [(type(problem), str(problem)) for problem in raised] == [(ValueError, "mine")]


async def a_slow_call_becomes_a_task(tasks: Tasks) -> None:
    gate = Gate()
    answer = await within(tasks.call("a", gate.order(), Options(), 0.01))
    assert answer.mode == "background"
    assert answer.task is not None
    gate.open()
    await within(tasks.wait([answer.task.id], "a"))
    assert await tasks.result(answer.task.id, "a") == "done"


async def a_call_can_be_promoted(tasks: Tasks) -> None:
    gate = Gate()
    calling = asyncio.ensure_future(tasks.call("a", gate.order(), Options(id="slow"), None))
    await within(gate.started.wait())
    assert [task.id for task in await tasks.calls("a")] == ["slow"]
    assert not await tasks.calls("b")
    await refused(NotFound, tasks.promote("slow", "b"))
    assert (await tasks.promote("slow", "a")).id == "slow"
    assert (await within(calling)).mode == "background"
    assert (await refused(Refused, tasks.promote("slow", "a"))).code == "already_a_task"
    gate.open()
    await within(tasks.wait(["slow"], "a"))


async def a_call_that_has_its_task_is_not_executed(tasks: Tasks) -> None:
    await ended(tasks, tool_call_id="call-1")
    gate = Gate()
    await refused(Duplicate, tasks.call("a", gate.order(), Options(tool_call_id="call-1"), None))
    assert not gate.started.is_set()


async def a_call_times_out(tasks: Tasks) -> None:
    gate = Gate()
    problem = await refused(TaskTimedOut, tasks.call("a", gate.order(), Options(timeout=0.05), None))
    assert problem.task.outcome is not None
    assert gate.stopped or not gate.started.is_set()


async def a_caller_that_is_cancelled_stops_its_call(tasks: Tasks) -> None:
    gate = Gate()
    calling = asyncio.ensure_future(tasks.call("a", gate.order(), Options(), None))
    await within(gate.started.wait())
    calling.cancel()
    await asyncio.wait([calling])
    await until(lambda: gate.stopped, "the function is stopped, here or elsewhere")


CHECKS: tuple[Check, ...] = (
    a_quick_call_is_answered,
    a_quick_call_has_its_id_and_what_was_emitted,
    a_call_raises_what_its_function_raised,
    a_slow_call_becomes_a_task,
    a_call_can_be_promoted,
    a_call_that_has_its_task_is_not_executed,
    a_call_times_out,
    a_caller_that_is_cancelled_stops_its_call,
)
