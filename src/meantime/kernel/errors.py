"""Every error Meantime raises on purpose.

MeantimeError                 .code is stable, .hint says what to do next
├── InvalidInput              the call itself is wrong (also a ValueError)
├── NotFound                  no such task in this thread
├── Ambiguous                 the prefix fits several tasks; .candidates
├── Refused                   the call is fine, the answer is no
│   ├── Duplicate             the id or the tool call has its task already; .existing
│   ├── LimitReached          too many running; says how many and what to do
│   ├── NotResumable          this task cannot be resumed (being resumed, session gone, no session)
│   ├── RetryNotSupported     there is no manual retry; resume is the way
│   └── Degraded              the disk is full or failed to sync: nothing new is accepted, endings wait
├── LeaseLost                 the turn's notices went back to the inbox before the ack; .notices
├── NotInWork                 current() was asked outside of background work
├── Closed                    this Meantime is closed
├── Disconnected              the owner of the ledger cannot be reached, or was lost in mid-call
├── StillRunning              a result was asked for before there is one (also a TimeoutError)
├── TaskEnded                 raised by `handle.result()` for every ending but completed; .task
│   └── TaskFailed, TaskCancelled, TaskTimedOut, TaskLost
└── LedgerError               the ledger on disk
    └── LedgerBusy, LedgerDamaged, LedgerTooNew
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Task


NAMED = 20  # ids in one text


class MeantimeError(Exception):
    """The root. `code` is part of the contract; the text is for people and may be reworded."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, hint: str = "") -> None:
        gap = "\n" if "\n" in message else " "  # a hint must not look like a part of somebody's output
        super().__init__(f"{message}{gap}{hint}".strip())
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class InvalidInput(MeantimeError, ValueError):
    code = "invalid_input"


class NotFound(MeantimeError, KeyError):
    code = "not_found"

    __str__ = Exception.__str__  # KeyError would show the repr of the text

    @classmethod
    def task(cls, ref: str, thread: str | None = None) -> NotFound:
        if thread is None:
            return cls(f"No task {ref!r}.", hint="List the tasks to see their ids.")
        return cls(
            f"No task {ref!r} in this thread.",
            hint="List the thread's tasks to see their ids; another thread's task is not visible here.",
        )


class Ambiguous(MeantimeError):
    code = "ambiguous"

    def __init__(self, ref: str, candidates: Sequence[str]) -> None:
        listed = ", ".join(candidates)
        super().__init__(f"{ref!r} matches {len(candidates)} tasks: {listed}.", hint="Be more specific.")
        self.candidates = tuple(candidates)


class Refused(MeantimeError):
    code = "refused"


class Duplicate(Refused):
    code = "duplicate"

    def __init__(self, message: str, existing: str, *, code: str = "duplicate") -> None:
        super().__init__(message, code=code, hint=f"The existing task is {existing}.")
        self.existing = existing

    @classmethod
    def of_id(cls, id: str) -> Duplicate:
        return cls(f"A task with the id {id!r} exists already.", id, code="duplicate_id")


class LimitReached(Refused):
    code = "limit_reached"

    def __init__(self, message: str, *, running: int, limit: int) -> None:
        super().__init__(
            message, hint="Wait for one to end, cancel one, or raise the limit with set_limits(...)."
        )
        self.running = running
        self.limit = limit


class NotResumable(Refused):
    code = "not_resumable"


class RetryNotSupported(Refused):
    code = "retry_not_supported"

    def __init__(self) -> None:
        super().__init__("Manual retry is not supported.", hint="Resume the task, or start a new one.")


class Degraded(Refused):
    code = "degraded"


class LeaseLost(MeantimeError):
    code = "lease_lost"

    def __init__(self, notices: Sequence[str]) -> None:
        rest = f" and {len(notices) - NAMED} more" if len(notices) > NAMED else ""
        named = ", ".join(notices[:NAMED]) + rest
        super().__init__(
            f"This turn does not hold {named} (any more).",
            hint="They come again with the same ids; check the transcript for an id before adding it.",
        )
        self.notices = tuple(notices)


class NotInWork(MeantimeError, LookupError):
    code = "not_in_work"


class Closed(MeantimeError):
    code = "closed"

    def __init__(self) -> None:
        super().__init__("This Meantime is closed.", hint="Open it again with Meantime.open(path).")


class Disconnected(MeantimeError, ConnectionError):
    code = "disconnected"


class StillRunning(MeantimeError, TimeoutError):
    code = "still_running"


class TaskEnded(MeantimeError):
    """A result was asked for and there is none; `task.outcome` says how it ended."""

    code = "task_ended"

    def __init__(self, message: str, task: Task) -> None:
        super().__init__(message, hint="See .task.outcome for all that is known.")
        self.task = task


class TaskFailed(TaskEnded):
    code = "task_failed"


class TaskCancelled(TaskEnded):
    code = "task_cancelled"


class TaskTimedOut(TaskEnded):
    code = "task_timed_out"


class TaskLost(TaskEnded):
    code = "task_lost"


class LedgerError(MeantimeError):
    code = "ledger"


class LedgerBusy(LedgerError):
    code = "ledger_busy"


class LedgerDamaged(LedgerError):
    code = "ledger_damaged"


class LedgerTooNew(LedgerError):
    code = "ledger_too_new"
