"""One run of an agent's task, as other protocols name it: by an id of its own."""

from __future__ import annotations

from typing import NamedTuple

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Task, TimedOut


class NumberedRun(NamedTuple):
    """The task as this run left it, or as it is now. A pending run is a follow-up that was said while the run
    before it goes on: then it is the task of that one."""

    task: Task
    number: int

    @property
    def id(self) -> str:
        return f"{self.task.id}.{self.number}"

    @property
    def thread(self) -> str:
        return self.task.thread

    @property
    def is_pending(self) -> bool:
        return self.number > self.task.run.number

    @property
    def dropped(self) -> bool:
        """A follow-up that does not come: its task was cancelled before."""
        return self.is_pending and not self.task.follow_up

    @property
    def waits(self) -> bool:
        """Its question is open."""
        return not self.is_pending and self.task.status is Status.WAITING

    @property
    def ended(self) -> bool:
        return self.dropped or (self.task.ended and not self.is_pending)

    @property
    def stands(self) -> bool:
        """Nothing more comes of it by itself: it has ended, or it waits for an answer."""
        return self.ended or self.waits

    @property
    def status(self) -> Status:
        if self.is_pending:
            return Status.CANCELLED if self.dropped else Status.QUEUED
        return self.task.status

    @property
    def error(self) -> tuple[str, str] | None:
        """The code and the text of an ending that is not a result; None for every other."""
        if self.is_pending:
            return ("cancelled", "The run was cancelled before it began.") if self.dropped else None
        match self.task.outcome:
            case None | Completed():
                return None
            case Failed(message=text, code=code):
                return (code, text)
            case TimedOut(seconds=seconds):
                return ("timed_out", f"The run took longer than {seconds:g} seconds.")
            case Cancelled(reason=reason, by=by):
                return ("cancelled", reason or f"The run was cancelled by {by or 'somebody'}.")
            case Lost(reason=reason):
                return ("lost", reason)


def split_run_id(id: str) -> tuple[str, int] | None:
    """The task, and which of its runs; None for a text that is not the id of a run."""
    task, dot, number = id.rpartition(".")
    if not (dot and task and number.isascii() and number.isdigit() and len(number) < 10 and int(number) > 0):
        return None
    return task, int(number)
