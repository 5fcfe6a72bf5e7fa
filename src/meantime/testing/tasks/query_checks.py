"""Looking: by id or prefix, in one's own thread; waiting, and what there is to read."""

from __future__ import annotations

from meantime.kernel.errors import Ambiguous, InvalidInput, NotFound, StillRunning, TaskFailed
from meantime.kernel.lifecycle import Status
from meantime.kernel.work import Call
from meantime.ports.store import Query
from meantime.ports.tasks import Options, Tasks

from ..suite.patience import within
from .sample_work import Check, Gate, ended, refused, throw


async def a_unique_prefix_is_enough(tasks: Tasks) -> None:
    await ended(tasks, id="alpha-1")
    await ended(tasks, id="alpha-2")
    await ended(tasks, id="beta")
    assert (await tasks.get("be", "a")).id == "beta"
    problem = await refused(Ambiguous, tasks.get("alpha", "a"))
    assert set(problem.candidates) == {"alpha-1", "alpha-2"}


async def another_threads_task_is_not_found(tasks: Tasks) -> None:
    task = await ended(tasks)
    for asking in (tasks.get(task.id, "b"), tasks.result(task.id, "b"), tasks.cancel(task.id, "b"),
                   tasks.wait([task.id], "b"), tasks.runs_of(task.id, "b"),
                   tasks.get("nothing", None)):  # fmt: skip
        await refused(NotFound, asking)
    assert (await tasks.get(task.id, None)).thread == "a"


async def a_listing_is_newest_first_and_in_parts(tasks: Tasks) -> None:
    ids = [(await ended(tasks, number)).id for number in range(4)]
    found = await tasks.list("a", [Status.COMPLETED], limit=2, offset=1)
    assert [task.id for task in found] == [ids[2], ids[1]]
    assert not await tasks.list("a", [Status.FAILED])
    assert not await tasks.list("b", [Status.COMPLETED])
    page = await tasks.page(Query(limit=1))
    assert (len(page.tasks), page.total) == (1, 4)


async def bad_questions_are_refused(tasks: Tasks) -> None:
    task = await ended(tasks)
    nan = float("nan")
    for asking in (tasks.get("", None), tasks.get("../x", None), tasks.list("a", None, limit=0),
                   tasks.list("a", None, offset=-1), tasks.wait([task.id], "a", timeout=nan),
                   tasks.wait([task.id], "a", until="some"), tasks.output(task.id, "a", wait=-1),
                   tasks.events(-1, 5), tasks.events(0, 0), tasks.notices(None, ["new"])):  # fmt: skip
        await refused(InvalidInput, asking)


async def a_wait_ends_with_any_with_all_and_with_its_time(tasks: Tasks) -> None:
    gate = Gate()
    slow = await tasks.start("a", gate.order(), Options())
    quick = await ended(tasks)
    found = await within(tasks.wait([slow.id, quick.id], "a", until="any"))
    assert [task.ended for task in found] == [False, True]
    found = await within(tasks.wait([slow.id], "a", timeout=0.01))
    assert not found[0].ended
    gate.open()
    assert all(task.ended for task in await within(tasks.wait([slow.id, quick.id], "a")))


async def a_result_that_is_not_there_says_why(tasks: Tasks) -> None:
    gate = Gate()
    task = await tasks.start("a", gate.order(), Options())
    await refused(StillRunning, tasks.result(task.id, "a"))
    gate.open()
    failed = await tasks.start("a", Call(throw, "broken").order(), Options())
    await within(tasks.wait([failed.id], "a"))
    problem = await refused(TaskFailed, tasks.result(failed.id, "a"))
    assert problem.task.id == failed.id
    assert "broken" in str(problem)


async def events_are_in_order_and_can_be_waited_for(tasks: Tasks) -> None:
    before = await tasks.last_event()
    task = await ended(tasks)
    await within(tasks.wait_events(before))
    found = [event for event in await tasks.events(before, 100) if event.task_id == task.id]
    assert [event.seq for event in found] == sorted({event.seq for event in found})
    assert (found[0].kind, found[-1].status) == ("submitted", Status.COMPLETED)
    assert await tasks.last_event() >= found[-1].seq


async def threads_and_numbers_are_counted(tasks: Tasks) -> None:
    await ended(tasks, thread="a")
    await ended(tasks, thread="b")
    assert {count.id for count in await tasks.threads(10)} == {"a", "b"}
    count = await tasks.thread("a")
    assert (count.active, count.unread) == (0, 1)
    assert (await tasks.statistics(None)).total == 2
    assert (await tasks.statistics("a")).total == 1
    assert await tasks.stats()


CHECKS: tuple[Check, ...] = (
    a_unique_prefix_is_enough,
    another_threads_task_is_not_found,
    a_listing_is_newest_first_and_in_parts,
    bad_questions_are_refused,
    a_wait_ends_with_any_with_all_and_with_its_time,
    a_result_that_is_not_there_says_why,
    events_are_in_order_and_can_be_waited_for,
    threads_and_numbers_are_counted,
)
