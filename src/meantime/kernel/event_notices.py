"""Notices that a run sends before it ends: as often as the rate allows, the rest counted and told together.

Nothing is dropped: an event that may not have a notice of its own joins the last one while nobody has leased
that, or waits in the task's own row for the next.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from .argument_checks import check_text
from .errors import InvalidInput
from .model import EventTally, Task
from .notice_sources import Draft, NoticeBody, SourceKind
from .payloads import clean
from .plain_text import cut

MOST_GIVEN = 100_000  # characters of a text; what is told is shorter
MOST_TEXT = 4_000  # characters of one event
MOST_KEPT = 500  # characters of those that are told together
MINUTE = 60.0


class NoticeRate(Struct, frozen=True):
    """How often one source may send a notice; the rest is told together."""

    seconds: float = 1.0  # between two
    per_minute: int = 30


class Events(Struct, frozen=True):
    """Events that are told at the same time."""

    first: str
    last: str
    count: int = 1
    number: int = 0  # of an event of a worker, among those of its claim


def one(text: str, number: int = 0) -> Events:
    """A single event."""
    return Events(text, text, number=number)


def checked(text: object) -> str:
    """The text of an event as it was given. Raises InvalidInput."""
    given = check_text(text, "text", MOST_GIVEN)
    if not given.strip():
        raise InvalidInput("text must say something.", hint="Say what the conversation should know.")
    return given


def is_heard(task: Task, number: int) -> bool:
    """Whether this event of the worker that has the run is on record. 0 is not an event of a worker."""
    claim, tally = task.run.claim, task.run.events
    if not number or claim is None or tally is None:
        return False
    nonce, last = tally.heard
    return nonce == claim.nonce and number <= last


def in_use(text: str) -> str:
    """As much of a text as `worded` looks at: the rest need not travel."""
    return text[: 4 * MOST_TEXT]


def worded(text: str, most: int = MOST_TEXT) -> str:
    """The text of an event as it is told."""
    return cut(clean(text[: 4 * most]), most)


def wait_for(tally: EventTally, rate: NoticeRate, now: float) -> float:
    """Seconds until the next notice may be made. A clock that was set back delays nothing."""
    recent = _recent(tally, now)
    newest = max((at for at in tally.recent if at <= now), default=None)  # it may be older than a minute
    if newest is None:
        return 0.0
    wait = newest + rate.seconds - now
    if len(recent) >= rate.per_minute:
        wait = max(wait, recent[-rate.per_minute] + MINUTE - now)
    return max(0.0, wait)


def send(
    task: Task, events: Events, now: float, rate: NoticeRate, *, joins: bool
) -> tuple[EventTally, Draft | None]:
    """More events of the task's run. `joins` is whether the last notice may still be unleased."""
    tally = task.run.events or EventTally()
    if events.number and task.run.claim is not None:
        tally = replace(tally, heard=(task.run.claim.nonce, events.number))
    if joins and tally.seq and not tally.waiting and wait_for(tally, rate, now) > 0.0:
        joined = replace(tally, count=tally.count + events.count)
        return joined, _draft(task, joined, worded(events.last, MOST_KEPT), now, joins=True)
    waits = replace(
        tally,
        waiting=tally.waiting + events.count,
        waits_first=tally.waits_first or worded(events.first, MOST_KEPT),
        waits_last=worded(events.last, MOST_KEPT),
    )
    if wait_for(tally, rate, now) > 0.0:
        return waits, None
    return _next(task, waits, worded(events.last), now)


def flush(task: Task, now: float) -> tuple[EventTally, Draft | None]:
    """The events that wait, as one notice: their time has come, or the run ends."""
    tally = task.run.events or EventTally()
    return _next(task, tally, tally.waits_last, now) if tally.waiting else (tally, None)


def _next(task: Task, tally: EventTally, text: str, now: float) -> tuple[EventTally, Draft]:
    made = EventTally(
        seq=tally.seq + 1,
        recent=(*_recent(tally, now), now),
        count=tally.waiting,
        first=tally.waits_first or worded(text, MOST_KEPT),
        heard=tally.heard,
    )
    return made, _draft(task, made, text, now)


def _draft(task: Task, tally: EventTally, text: str, now: float, *, joins: bool = False) -> Draft:
    body = NoticeBody(
        kind=SourceKind.EVENT,
        of=task.id,
        run=task.run.number,
        seq=tally.seq,
        thread=task.inbox,
        title=task.title,
        text=text,
        at=now,
        count=tally.count,
        first=tally.first if tally.count > 1 else "",
    )
    return Draft(task.inbox, now, body=body, joins=joins)


def _recent(tally: EventTally, now: float) -> tuple[float, ...]:
    return tuple(at for at in tally.recent if 0.0 <= now - at < MINUTE)
