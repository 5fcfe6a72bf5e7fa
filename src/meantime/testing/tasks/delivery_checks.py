"""Being told: exactly once, in order, and never lost."""

from __future__ import annotations

import asyncio

from meantime.kernel.errors import InvalidInput, LeaseLost, NotFound
from meantime.kernel.notices import Message, Part
from meantime.ports.store import Entry
from meantime.ports.tasks import Tasks

from ..suite.patience import within
from .sample_work import Check, ended, refused


async def endings_are_told_in_order_and_once(tasks: Tasks) -> None:
    ids = [(await ended(tasks, number)).id for number in range(3)]
    turn = await tasks.open_turn("a", lease=None, limit=10)
    assert [notice.task_id for notice in turn.notices] == ids
    settled = await tasks.ack(turn.id, [notice.id for notice in turn.notices], ())
    assert len(settled.told) == 3
    await tasks.close_turn(turn.id, failed=False)
    again = await tasks.open_turn("a", lease=None, limit=10)
    assert not again.notices
    await tasks.close_turn(again.id, failed=False)


async def what_was_not_acknowledged_comes_again(tasks: Tasks) -> None:
    await ended(tasks)
    turn = await tasks.open_turn("a", lease=None, limit=10)
    assert not (await tasks.open_turn("b", lease=None, limit=10)).notices
    await tasks.close_turn(turn.id, failed=True)
    again = await tasks.open_turn("a", lease=None, limit=10)
    assert [notice.id for notice in again.notices] == [notice.id for notice in turn.notices]
    assert again.notices[0].delivery == 2
    await tasks.close_turn(again.id, failed=False)


async def an_ack_can_be_sent_again_and_only_by_its_turn(tasks: Tasks) -> None:
    await ended(tasks)
    turn = await tasks.open_turn("a", lease=None, limit=10)
    ids = [notice.id for notice in turn.notices]
    first = await tasks.ack(turn.id, ids, ())
    assert await tasks.ack(turn.id, ids, ()) == first
    await tasks.close_turn(turn.id, failed=False)
    assert await tasks.ack(turn.id, ids, ()) == first
    problem = await refused(LeaseLost, tasks.ack("turn_another", ids, ()))
    assert problem.notices == tuple(ids)


async def a_boundary_brings_what_came_since(tasks: Tasks) -> None:
    turn = await tasks.open_turn("a", lease=60.0, limit=10)
    assert not turn.notices
    task = await ended(tasks)
    fresh = await tasks.boundary(turn.id, limit=10)
    assert [notice.task_id for notice in fresh] == [task.id]
    await tasks.renew(turn.id)
    await tasks.ack(turn.id, [notice.id for notice in fresh], ())
    await tasks.close_turn(turn.id, failed=False)
    await refused(NotFound, tasks.renew(turn.id))
    await refused(NotFound, tasks.boundary(turn.id, limit=10))


async def a_turn_of_another_thread_is_not_found(tasks: Tasks) -> None:
    turn = await tasks.open_turn("a", lease=None, limit=10)
    await refused(NotFound, tasks.renew(turn.id, thread="b"))
    await tasks.renew(turn.id, thread="a")
    await tasks.close_turn(turn.id, failed=False)


async def an_ending_that_was_read_counts_as_told(tasks: Tasks) -> None:
    turn = await tasks.open_turn("a", lease=None, limit=10)
    task = await ended(tasks)
    output = await tasks.output(task.id, "a", turn=turn.id)
    assert output.value == 5, output
    settled = await tasks.ack(turn.id, (), (), (f"{task.id}.1",))
    assert settled.told == (f"{task.id}.1",)
    await tasks.close_turn(turn.id, failed=False)
    assert not await tasks.notices("a", ["unread", "leased", "parked"])


async def an_idle_thread_is_woken(tasks: Tasks) -> None:
    waiting = asyncio.ensure_future(tasks.wait_wake("a", -1))
    await ended(tasks)
    seen = await within(waiting)
    assert seen >= 0
    assert await tasks.reminder("a")
    assert not await tasks.reminder("b")


async def what_fails_too_often_is_parked_until_it_is_unparked(tasks: Tasks) -> None:
    await ended(tasks)
    for _ in range(5):
        turn = await tasks.open_turn("a", lease=None, limit=10)
        await tasks.close_turn(turn.id, failed=True)
    assert len(await tasks.notices("a", ["parked"])) == 1
    assert await tasks.unpark("a") == 1
    assert len(await tasks.notices("a", ["unread"])) == 1


async def a_transcript_is_saved_with_its_ack(tasks: Tasks) -> None:
    task = await ended(tasks)
    turn = await tasks.open_turn("a", lease=None, limit=10)
    notice = turn.notices[0]
    entry = Entry(Message("user", (Part("told"),)), notice.id)
    await tasks.ack(turn.id, [notice.id], [entry])
    await tasks.close_turn(turn.id, failed=False)
    await tasks.append("a", [Entry(Message("assistant", (Part("well"),)))])
    found = await tasks.transcript("a")
    assert [one.message.text for one in found] == ["told", "well"]
    assert await tasks.has_entry("a", f"{task.id}.1")
    assert not await tasks.has_entry("b", f"{task.id}.1")


async def bad_turns_are_refused(tasks: Tasks) -> None:
    for thread, lease, limit in (("a", None, 0), ("a", float("nan"), 1), ("", None, 1), ("a", 0, 1)):
        await refused(InvalidInput, tasks.open_turn(thread, lease=lease, limit=limit))
    assert (await tasks.thread("a")).leased == 0


CHECKS: tuple[Check, ...] = (
    endings_are_told_in_order_and_once,
    what_was_not_acknowledged_comes_again,
    an_ack_can_be_sent_again_and_only_by_its_turn,
    a_boundary_brings_what_came_since,
    a_turn_of_another_thread_is_not_found,
    an_ending_that_was_read_counts_as_told,
    an_idle_thread_is_woken,
    what_fails_too_often_is_parked_until_it_is_unparked,
    a_transcript_is_saved_with_its_ack,
    bad_turns_are_refused,
)
