"""Handing off: accepted means there, once, and with all that it was given."""

from __future__ import annotations

from typing import Any

from meantime.kernel.errors import Duplicate, InvalidInput, LimitReached, NotResumable, RetryNotSupported
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Limits
from meantime.kernel.model import Completed, Failed, InlineLimits
from meantime.kernel.work import Call
from meantime.ports.tasks import Options, Tasks

from ..suite.patience import within
from .sample_work import Check, Gate, ended, refused, start, throw


async def a_started_task_is_there(tasks: Tasks) -> None:
    gate = Gate()
    task = await tasks.start("a", gate.order(), Options(description="Count", meta={"k": [1, None]}))
    await within(gate.started.wait())
    found = await tasks.get(task.id, "a")
    assert (found.status, found.title, found.meta) == (Status.RUNNING, "Count", {"k": [1, None]})
    gate.open()
    (found,) = await within(tasks.wait([task.id], "a"))
    assert isinstance(found.outcome, Completed), found.outcome
    assert found.outcome.result == "done"


async def an_exception_is_a_failure(tasks: Tasks) -> None:
    task = await tasks.start("a", Call(throw, "no such file").order(), Options())
    (task,) = await within(tasks.wait([task.id], "a"))
    assert isinstance(task.outcome, Failed), task.outcome
    assert task.outcome.code == "ValueError"
    assert "no such file" in task.outcome.message


async def values_come_back_as_json(tasks: Tasks) -> None:
    values: list[Any] = [None, True, 2**70, 1.5, "é\u2028\n\0", [[], {"a": [1]}], {"": None}]
    task = await ended(tasks, values)
    assert await tasks.result(task.id, "a") == values


async def what_is_not_json_is_kept_as_text(tasks: Tasks) -> None:
    task = await ended(tasks, {"x": float("nan"), "y": b"\xff", "z": "\ud800"})
    assert isinstance(task.outcome, Completed), task.outcome
    assert task.outcome.lossy


async def an_id_is_taken_once(tasks: Tasks) -> None:
    await ended(tasks, id="mine")
    problem = await refused(Duplicate, start(tasks, id="mine"))
    assert (problem.existing, problem.code) == ("mine", "duplicate_id")


async def a_tool_call_has_one_task(tasks: Tasks) -> None:
    task = await start(tasks, tool_call_id="call-1")
    problem = await refused(Duplicate, start(tasks, tool_call_id="call-1"))
    assert problem.existing == task.id
    await start(tasks, thread="b", tool_call_id="call-1")


async def a_limit_refuses_with_its_numbers(tasks: Tasks) -> None:
    await tasks.set_limits(Limits(per_thread=1))
    assert tasks.limits().per_thread == 1
    gate = Gate()
    await tasks.start("a", gate.order(), Options())
    problem = await refused(LimitReached, start(tasks, on_limit="reject"))
    assert (problem.running, problem.limit) == (1, 1)
    gate.open()


async def over_the_limit_is_queued_and_then_runs(tasks: Tasks) -> None:
    await tasks.set_limits(Limits(per_thread=1))
    gate = Gate()
    await tasks.start("a", gate.order(), Options())
    first, second = await start(tasks), await start(tasks)
    assert [await tasks.position(task.id, "a") for task in (first, second)] == [1, 2]
    gate.open()
    found = await within(tasks.wait([first.id, second.id], "a"))
    assert [task.status for task in found] == [Status.COMPLETED] * 2


async def a_big_result_is_spilled_and_read_whole(tasks: Tasks) -> None:
    task = await ended(tasks, "x" * 5_000, inline=InlineLimits(100, 10))
    assert isinstance(task.outcome, Completed), task.outcome
    assert task.outcome.spill is not None
    assert await tasks.result(task.id, "a") == "x" * 5_000


BAD_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("timeout", float("nan")),
    ("timeout", 0),
    ("description", b"x"),
    ("batch", ""),
    ("tool_call_id", float("inf")),
    ("message_id", "a b"),
    ("id", "../x"),
    ("notify", None),
    ("retry", "always"),
    ("on_limit", "wait"),
    ("inline", {}),
    ("fork", 1),
    ("fork_of", "../x"),
    ("context", [1]),
    ("session", "\ud800"),
    ("meta", {"x": object()}),
    ("parent", "../x"),
    ("place", "gpu"),
    ("place", "pool:../x"),
    ("place", "pool:gpu"),  # there are no workers
    ("delay", -1),
    ("delay", float("nan")),
    ("at", "tomorrow"),
    ("at", 1.0),  # long past
)


async def bad_options_are_refused(tasks: Tasks) -> None:
    for name, value in BAD_OPTIONS:
        await refused(InvalidInput, start(tasks, **{name: value}))
    await refused(InvalidInput, start(tasks, thread="no thread"))
    assert not await tasks.list(None, None, history=True)


async def a_function_cannot_be_resumed_or_retried(tasks: Tasks) -> None:
    task = await ended(tasks)
    await refused(NotResumable, tasks.resume(task.id, "a", "go on", Options()))
    await refused(RetryNotSupported, tasks.retry(task.id, "a"))


async def batches_are_counted(tasks: Tasks) -> None:
    for number in range(3):
        await ended(tasks, number, batch="three")
    count = await tasks.batch("three", "a")
    assert (count.total, count.ended) == (3, 3)


CHECKS: tuple[Check, ...] = (
    a_started_task_is_there,
    an_exception_is_a_failure,
    values_come_back_as_json,
    what_is_not_json_is_kept_as_text,
    an_id_is_taken_once,
    a_tool_call_has_one_task,
    a_limit_refuses_with_its_numbers,
    over_the_limit_is_queued_and_then_runs,
    a_big_result_is_spilled_and_read_whole,
    bad_options_are_refused,
    a_function_cannot_be_resumed_or_retried,
    batches_are_counted,
)
