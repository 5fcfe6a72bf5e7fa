"""Sources of notices: the ending of a run, an event of a run that goes on, an alarm, a message.

The id of a notice says its source. This is the only place that makes such an id and takes it apart.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from .errors import InvalidInput
from .ids import check_id, is_generated

SCHEDULE = "s_"
MESSAGE = "m_"
MOST_DIGITS = 9


class SourceKind(StrEnum):
    """The kind of source that a notice has."""

    ENDING = "ending"  # of a run
    EVENT = "event"  # of a run that goes on
    ALARM = "alarm"  # an occurrence of a schedule
    MESSAGE = "message"  # from another conversation


class NoticeRef(NamedTuple):
    """The source of one notice. No two notices have the same."""

    kind: SourceKind
    of: str  # the id of its task, schedule or message
    run: int = 0  # the run; of an alarm the occurrence
    seq: int = 0  # of an event: 1 is the run's first

    @property
    def id(self) -> str:
        """The same for every delivery: a host can look for it in its transcript."""
        match self.kind:
            case SourceKind.EVENT if is_generated(self.of):
                return f"{self.of}.{self.run}.{self.seq}"
            case SourceKind.EVENT:  # an id from outside may end in numbers of its own
                return f"{self.of}.{self.run}:{self.seq}"
            case SourceKind.MESSAGE:
                return self.of
            case _:
                return f"{self.of}.{self.run}"


_EVENT = re.compile(rf"(?s)(t_[0-9a-z]{{10}})\.([0-9]{{1,{MOST_DIGITS}}})\.([0-9]{{1,{MOST_DIGITS}}})\Z")
_FOREIGN_EVENT = re.compile(rf"(?s)(.+)\.([0-9]{{1,{MOST_DIGITS}}}):([0-9]{{1,{MOST_DIGITS}}})\Z")
_NUMBERED = re.compile(rf"(?s)(.+)\.([0-9]{{1,{MOST_DIGITS}}})\Z")
_OURS = re.compile(r"[sm]_[0-9a-z]{10}\Z")


def parse_notice_id(id: str) -> NoticeRef | None:
    """The source that a notice's id names; None where it is not such an id."""
    if id.startswith(MESSAGE) and _OURS.match(id):
        return NoticeRef(SourceKind.MESSAGE, id)
    if found := _EVENT.match(id) or _FOREIGN_EVENT.match(id):
        return NoticeRef(SourceKind.EVENT, found[1], int(found[2]), int(found[3]))
    if not (found := _NUMBERED.match(id)):
        return None
    is_alarm = found[1].startswith(SCHEDULE) and _OURS.match(found[1])
    return NoticeRef(SourceKind.ALARM if is_alarm else SourceKind.ENDING, found[1], int(found[2]))


def is_like_a_notice(id: str) -> bool:
    """Whether the id of a task would be taken for that of an event, an alarm or a message."""
    found = parse_notice_id(id)
    if found is None:
        return _OURS.match(id) is not None
    return found.kind in (SourceKind.ALARM, SourceKind.MESSAGE) or is_generated(found.of)


def check_new_id(value: object, what: str) -> str:
    """The id of a new task, chosen by whoever starts it."""
    id = check_id(value, what)
    if is_like_a_notice(id):
        raise InvalidInput(
            f"{what} {id!r} looks like the id of a notice.",
            hint="Choose another, such as your own name for it.",
        )
    return id


def notice_id(task_id: str, run: int) -> str:
    """The id of the notice of a run's ending."""
    return f"{task_id}.{run}"


class NoticeBody(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """The words of a notice that is not an ending. Once it was leased they never change."""

    kind: SourceKind
    of: str
    run: int = 0
    seq: int = 0
    thread: str  # that is told
    title: str  # of its task or schedule
    text: str  # the last event's
    at: float
    count: int = 1  # events that it stands for
    first: str = ""  # the first event's text, where it stands for several
    late: float = 0.0  # seconds after the time that it was for

    @property
    def ref(self) -> NoticeRef:
        return NoticeRef(self.kind, self.of, self.run, self.seq)


class Draft(Struct, frozen=True, gc=False):
    """A notice to be written with a change: it takes the next number of its thread."""

    thread: str
    at: float
    muted: bool = False  # recorded, and nobody is told
    body: NoticeBody | None = None  # None is the ending of the task's run
    joins: bool = False  # takes the place of the notice with the same source, which nobody has leased yet
