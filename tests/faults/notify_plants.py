"""Bugs that a careless hand could make in what is told before the end. Each must be caught."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace


def cursor_without_its_notice() -> None:
    """Now and then the task says that it was told, and the notice is not in the same transaction."""
    from meantime.runtime import record

    notify = record.notify

    def forgetful(task: Any, *args: Any, **more: Any) -> Any:
        change = notify(task, *args, **more)
        seq = change.task.run.events.seq if change.task.run.events else 0
        return replace(change, notices=()) if seq % 7 == 3 else change

    record.notify = forgetful  # type: ignore[assignment]


def notice_without_its_cursor() -> None:
    """A refused commit is tried again although the first one was written."""
    from meantime.runtime.record import Record

    notify = Record.notify
    told = 0

    async def twice(self: Any, *args: Any) -> Any:
        nonlocal told
        told += 1
        if told % 5 == 0:
            await notify(self, *args)
        return await notify(self, *args)

    Record.notify = twice  # type: ignore[method-assign]


def joining_what_was_leased() -> None:
    """An event joins the last notice although a turn has it: whoever has read it misses that event."""
    from meantime.stores.sqlite import commit

    commit.SQL["joinable_notice"] = (
        "SELECT thread, number FROM notices WHERE kind = ? AND source = ? AND run = ? AND seq = ?"
    )


def waiting_events_are_dropped() -> None:
    """The ending of a run tells nothing of the events that still wait."""
    from meantime.kernel import change

    change.flush = lambda task, now: (task.run.events, None)  # type: ignore[assignment]


PLANTS = {
    "cursor_without_its_notice": "each",
    "notice_without_its_cursor": "each",
    "joining_what_was_leased": "rarely",
    "waiting_events_are_dropped": "rarely",
}
