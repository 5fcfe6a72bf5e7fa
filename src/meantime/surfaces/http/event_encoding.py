"""From the journal to the stream: events become seed 001's deltas, with the task as it was then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from meantime.kernel.errors import NotFound
from meantime.kernel.lifecycle import ENDED, Status
from meantime.kernel.model import Event, Task
from meantime.ports.tasks import Tasks

from .event_ring import Delta
from .responses import encode
from .task_encoding import wire_task, word

CREATED, UPDATED = "task.created", "task.updated"


def frame(name: str, data: bytes, id: int | None = None) -> bytes:
    """One server-sent event. JSON has no line breaks of its own, so one data line is enough."""
    head = b"" if id is None else b"id: %d\n" % id
    return b"%sevent: %s\ndata: %s\n\n" % (head, name.encode(), data)


def name_of(event: Event) -> str:
    if event.kind == "submitted":
        return CREATED
    if event.kind == "ended" and event.status in ENDED:
        return f"task.{word(event.status, False)}"
    return UPDATED


def merged(events: Sequence[Event]) -> list[Event]:
    """The last of several updates of one task that come together is enough."""
    last = {event.task_id: event.seq for event in events if name_of(event) == UPDATED}
    return [event for event in events if name_of(event) != UPDATED or last[event.task_id] == event.seq]


async def deltas(tasks: Tasks, events: Sequence[Event]) -> AsyncIterator[Delta]:
    """In the order of the journal. Tasks that were deleted since are left out."""
    known: dict[str, Task] = {}
    for event in merged(events):
        try:
            now = known.get(event.task_id) or await tasks.get(event.task_id, None)
            then = await _as_it_was(tasks, now, event)
        except NotFound:
            continue
        known[event.task_id] = now
        data = encode(wire_task(then))
        yield Delta(event.seq, now.id, now.thread, now.batch, frame(name_of(event), data))


async def _as_it_was(tasks: Tasks, now: Task, event: Event) -> Task:
    """A task may have gone on since: it is not created completed, and its first run ended before it
    was resumed."""
    if event.run != now.run.number:
        runs = await tasks.runs_of(now.id, None)
        now = next((run for run in runs if run.run.number == event.run), now)
    if event.status in ENDED or now.status not in ENDED:
        return now
    status = Status.RUNNING if event.status is Status.QUEUED else event.status
    run = replace(now.run, ended_at=None, duration=None, retrieved_at=None)
    return replace(now, status=status, outcome=None, run=run)
