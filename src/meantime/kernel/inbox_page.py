"""An inbox as people look at it: every notice of a thread with what became of it. Looking settles nothing."""

from __future__ import annotations

from msgspec import Struct

from .lifecycle import Status
from .notice_sources import SourceKind
from .notices import Notice, NoticeState

MOST_TEXT = 500  # characters of a notice's words
FAILURES, UNCLAIMED, UNREADABLE = "failures", "unclaimed", "unreadable"  # why a notice is parked


class InboxEntry(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """One notice, and whether its thread was told of it."""

    id: str
    number: int  # per thread, in the order of commits
    task: str  # the id of the task; of an alarm or a message, its own source's
    run: int
    title: str
    status: Status | None  # how the run ended; None where the notice is not an ending
    ended_at: float  # when the run ended, or the event came
    state: NoticeState
    turn: str | None = None  # the turn that holds it, or has told it
    turn_number: int | None = None  # that turn among those of its thread which were told something
    leased_at: float | None = None  # since when the turn holds it
    told_at: float | None = None
    attempts: int = 0  # how often it was leased
    failures: int = 0  # how many of those are known to have failed
    parked_for: str = ""  # one of the three reasons above
    kind: SourceKind = SourceKind.ENDING
    text: str = ""  # the words of a notice that is not an ending

    @property
    def reason(self) -> str:
        """Why it is parked, for people."""
        match self.parked_for:
            case "failures":
                return f"Its delivery failed {self.failures} times."
            case "unclaimed":
                return "Nobody asked for the notices of this conversation for long."
            case "unreadable":
                return "Its task cannot be read: the ledger is damaged."
            case _:
                return ""


class InboxPage(Struct, frozen=True):
    """A page of an inbox, newest first, and the counts of the whole."""

    entries: tuple[InboxEntry, ...]
    before: int | None  # asks for the next page; None where this is the last
    counts: dict[str, int]  # by state
    exact: bool = True  # False: there are more told ones than were counted


def inbox_entry(notice: Notice, **more: object) -> InboxEntry:
    """The entry of a notice."""
    body = notice.body
    return InboxEntry(
        id=notice.id,
        number=notice.number,
        task=notice.task_id,
        run=notice.run,
        title=notice.task.title if body is None else body.title,
        status=notice.task.status if body is None else None,
        ended_at=notice.at,
        state=notice.state,
        attempts=notice.delivery,
        kind=notice.kind,
        text="" if body is None else body.text[:MOST_TEXT],
        **more,  # pyright: ignore[reportArgumentType]  the fields above
    )
