"""An inbox as people look at it: every notice of a thread with what became of it. Looking settles nothing."""

from __future__ import annotations

from msgspec import Struct

from .lifecycle import Status
from .model import Task
from .notices import NoticeState, notice_id

FAILURES, UNCLAIMED, UNREADABLE = "failures", "unclaimed", "unreadable"  # why a notice is parked


class InboxEntry(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """One notice: the ending of a run, and whether its thread was told of it."""

    id: str
    number: int  # per thread, in the order of commits
    task: str
    run: int
    title: str
    status: Status  # how the run ended
    ended_at: float
    state: NoticeState
    turn: str | None = None  # the turn that holds it, or has told it
    turn_number: int | None = None  # that turn among those of its thread which were told something
    leased_at: float | None = None  # since when the turn holds it
    told_at: float | None = None
    attempts: int = 0  # how often it was leased
    failures: int = 0  # how many of those are known to have failed
    parked_for: str = ""  # one of the three reasons above

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


def inbox_entry(task: Task, number: int, state: NoticeState, **more: object) -> InboxEntry:
    """The entry of a task as the run left it."""
    return InboxEntry(
        id=notice_id(task.id, task.run.number),
        number=number,
        task=task.id,
        run=task.run.number,
        title=task.title,
        status=task.status,
        ended_at=task.run.ended_at or 0.0,
        state=state,
        **more,  # pyright: ignore[reportArgumentType]  the fields above
    )
