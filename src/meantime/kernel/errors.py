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

TYPE_CHECKING = False  # to load `typing` takes 2 ms, and `meantime mcp` loads this before its first answer
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model import Task


NAMED = 20  # ids in one text
ENDINGS = (".", "!", "?", "…", ":")  # of a message that a hint can follow


def _is_whole(message: str, hint: str) -> bool:
    """False where the hint would run on from the message, as that of a work's own error may."""
    return not hint or not message or "\n" in message or message.endswith(ENDINGS)


class MeantimeError(Exception):
    """The root. `code` is part of the contract; the text is for people and may be reworded."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, hint: str = "") -> None:
        gap = "\n" if "\n" in message else " "  # a hint must not look like a part of somebody's output
        stop = "" if _is_whole(message, hint) else "."
        super().__init__(f"{message}{stop}{gap}{hint}".strip())
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code


class InvalidInput(MeantimeError, ValueError):
    """The call itself is wrong: an argument, an option or a combination of them. Also a ValueError."""

    code = "invalid_input"


class NotFound(MeantimeError, KeyError):
    """There is no such task in this thread, or no such tool, agent or server. Also a KeyError."""

    code = "not_found"

    __str__ = Exception.__str__  # KeyError would show the repr of the text

    @classmethod
    def task(cls, ref: str, thread: str | None = None) -> NotFound:
        """The error for a task that cannot be found: with the same words for an unknown id and for another
        thread's task.

        ref: the id that was asked for.
        thread: the thread that asked; None is a person, who sees every thread.
        """
        if thread is None:
            return cls(f"No task {ref!r}.", hint="List the tasks to see their ids.")
        return cls(
            f"No task {ref!r} in this thread.",
            hint="List the thread's tasks to see their ids; another thread's task is not visible here.",
        )


class Ambiguous(MeantimeError):
    """The prefix matches several tasks; `candidates` has their ids."""

    code = "ambiguous"

    def __init__(self, ref: str, candidates: Sequence[str]) -> None:
        listed = ", ".join(candidates)
        super().__init__(f"{ref!r} matches {len(candidates)} tasks: {listed}.", hint="Be more specific.")
        self.candidates = tuple(candidates)


class Refused(MeantimeError):
    """The call is valid, and the answer is no."""

    code = "refused"


class Duplicate(Refused):
    """The id or the tool call has its task, or its reminder, already; `existing` is the id of that."""

    code = "duplicate"

    def __init__(self, message: str, existing: str, *, code: str = "duplicate", what: str = "task") -> None:
        super().__init__(message, code=code, hint=f"The existing {what} is {existing}.")
        self.existing = existing

    @classmethod
    def of_id(cls, id: str) -> Duplicate:
        """The error for an id that is taken."""
        return cls(f"A task with the id {id!r} exists already.", id, code="duplicate_id")


class AlreadyAnswered(Refused):
    """Somebody else has answered the question before: `by` whom, `at` which time, and the `answer`."""

    code = "already_answered"

    def __init__(self, message: str, *, by: str, at: float, answer: str) -> None:
        super().__init__(message, hint="Look at the task: it goes on with that answer.")
        self.by = by
        self.at = at
        self.answer = answer


class LimitReached(Refused):
    """Too many tasks run. `running` and `limit` have the numbers, the text says what to do."""

    code = "limit_reached"

    def __init__(self, message: str, *, running: int, limit: int) -> None:
        super().__init__(
            message, hint="Wait for one to end, cancel one, or raise the limit with set_limits(...)."
        )
        self.running = running
        self.limit = limit


class NotResumable(Refused):
    """This task cannot be resumed: it is being resumed, its session is gone, or it never had one."""

    code = "not_resumable"


class RetryNotSupported(Refused):
    """There is no manual retry. Resume the task, or start a new one."""

    code = "retry_not_supported"

    def __init__(self) -> None:
        super().__init__("Manual retry is not supported.", hint="Resume the task, or start a new one.")


class Degraded(Refused):
    """The disk is full or failed to sync: new work is refused, and endings wait until they can be written."""

    code = "degraded"


class LeaseLost(MeantimeError):
    """The turn's notices went back to the inbox before the ack; `notices` has their ids."""

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
    """`current()` was called outside of background work. Also a LookupError."""

    code = "not_in_work"


class Closed(MeantimeError):
    """This Meantime is closed."""

    code = "closed"

    def __init__(self) -> None:
        super().__init__("This Meantime is closed.", hint="Open it again with Meantime.open(path).")


class Disconnected(MeantimeError, ConnectionError):
    """The owner of the ledger cannot be reached, or was lost during the call. Also a ConnectionError."""

    code = "disconnected"


class StillRunning(MeantimeError, TimeoutError):
    """A result was asked for before there is one. Also a TimeoutError."""

    code = "still_running"


class TaskEnded(MeantimeError):
    """A result was asked for and there is none; `task.outcome` says how it ended."""

    code = "task_ended"

    def __init__(self, message: str, task: Task) -> None:
        super().__init__(message, hint="See .task.outcome for all that is known.")
        self.task = task


class TaskFailed(TaskEnded):
    """A result was asked for, and the work failed."""

    code = "task_failed"


class TaskCancelled(TaskEnded):
    """A result was asked for, and the work was cancelled."""

    code = "task_cancelled"


class TaskTimedOut(TaskEnded):
    """A result was asked for, and the work ran out of time."""

    code = "task_timed_out"


class TaskLost(TaskEnded):
    """A result was asked for, and nobody can know how the work ended."""

    code = "task_lost"


class LedgerError(MeantimeError):
    """Something is wrong with the ledger on disk."""

    code = "ledger"


class LedgerBusy(LedgerError):
    """Another process owns the ledger."""

    code = "ledger_busy"


class LedgerDamaged(LedgerError):
    """The ledger is damaged and was set aside. `Meantime.open(path, salvage=True)` goes on with what can be
    read.
    """

    code = "ledger_damaged"


class LedgerTooNew(LedgerError):
    """A newer version of Meantime wrote the ledger."""

    code = "ledger_too_new"
