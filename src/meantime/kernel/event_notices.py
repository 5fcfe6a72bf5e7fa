"""Notices that a run sends before it ends: as often as the rate allows, the rest counted and told together.

Nothing is dropped: an event that may not have a notice of its own joins the last one while nobody has leased
that, or waits in the task's own row for the next.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from .model import EventTally, Task
from .notice_sources import Draft, NoticeBody, SourceKind
from .payloads import clean
from .plain_text import cut

MOST_TEXT = 4_000  # characters of one event
MOST_KEPT = 500  # characters of those that are told together
MINUTE = 60.0


class NoticeRate(Struct, frozen=True):
    """How often one source may send a notice; the rest is told together."""

    seconds: float = 1.0  # between two
    per_minute: int = 30


def worded(text: str, most: int = MOST_TEXT) -> str:
    """The text of an event as it is told."""
    return cut(clean(text[: 4 * most]), most)


def wait_for(tally: EventTally, rate: NoticeRate, now: float) -> float:
    """Seconds until the next notice may be made. A clock that was set back delays nothing."""
    recent = _recent(tally, now)
    if not recent:
        return 0.0
    wait = recent[-1] + rate.seconds - now
    if len(recent) >= rate.per_minute:
        wait = max(wait, recent[-rate.per_minute] + MINUTE - now)
    return max(0.0, wait)


def send(
    task: Task, text: str, now: float, rate: NoticeRate, *, joins: bool
) -> tuple[EventTally, Draft | None]:
    """One more event of the task's run. `joins` is whether the last notice may still be unleased."""
    tally = task.run.events or EventTally()
    if wait_for(tally, rate, now) <= 0.0:
        return _next(task, replace(tally, waiting=tally.waiting + 1), worded(text), now)
    if joins and tally.seq and not tally.waiting:
        joined = replace(tally, count=tally.count + 1)
        return joined, _draft(task, joined, worded(text, MOST_KEPT), now, joins=True)
    kept = worded(text, MOST_KEPT)
    return replace(
        tally, waiting=tally.waiting + 1, waits_first=tally.waits_first or kept, waits_last=kept
    ), None


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
