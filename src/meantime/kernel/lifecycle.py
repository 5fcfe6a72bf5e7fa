"""Where a task stands, what can happen to it, and the one table of legal moves.

The diagram in docs/internals/life-of-a-task.md is drawn from this table, and the schema's CHECK
constraints repeat its statuses; tests fail when either is stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Status(StrEnum):
    """Where a task stands. An ended status is final for its run."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"


class Move(StrEnum):
    START = "start"  # a slot is free
    ASK = "ask"  # the work needs an answer
    ANSWER = "answer"  # it has it
    CANCEL = "cancel"  # somebody, or the clock, asks it to stop
    COMPLETE = "complete"  # the work returned
    FAIL = "fail"  # the work raised
    STOP = "stop"  # it stopped because it was asked to
    TIME_OUT = "time_out"  # it was stopped by the clock
    LOSE = "lose"  # nobody can know how it ended
    RETRY = "retry"  # run again after a crash, only where the caller allowed it
    RESUME = "resume"  # a new run of an ended task


ENDED = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED, Status.TIMED_OUT, Status.LOST})
ACTIVE = frozenset(Status) - ENDED

_ENDINGS = {
    Move.COMPLETE: Status.COMPLETED,
    Move.FAIL: Status.FAILED,
    Move.STOP: Status.CANCELLED,
    Move.TIME_OUT: Status.TIMED_OUT,
    Move.LOSE: Status.LOST,
}
_RESUMABLE = {Move.RESUME: Status.QUEUED}

TABLE: Mapping[Status, Mapping[Move, Status]] = MappingProxyType(
    {
        # Cancelling what never started ends it at once: there is nobody to ask.
        Status.QUEUED: {
            Move.START: Status.RUNNING,
            Move.CANCEL: Status.CANCELLED,
            Move.FAIL: Status.FAILED,
            Move.LOSE: Status.LOST,
        },
        Status.RUNNING: {
            Move.ASK: Status.WAITING,
            Move.CANCEL: Status.CANCELLING,
            Move.RETRY: Status.QUEUED,
            **_ENDINGS,
        },
        Status.WAITING: {
            Move.ANSWER: Status.RUNNING,
            Move.CANCEL: Status.CANCELLING,
            Move.RETRY: Status.QUEUED,
            **_ENDINGS,
        },
        # A cancel is a request: what the work does with it decides.
        Status.CANCELLING: _ENDINGS,
        Status.COMPLETED: _RESUMABLE,
        Status.FAILED: _RESUMABLE,
        Status.CANCELLED: _RESUMABLE,
        Status.TIMED_OUT: _RESUMABLE,
        Status.LOST: _RESUMABLE,
    }
)


def after(status: Status, move: Move) -> Status | None:
    """The status that follows, or None where the move is not legal."""
    return TABLE[status].get(move)


def diagram() -> str:
    """The table as a Mermaid state diagram, one line per legal move."""
    lines = ["stateDiagram-v2", "    [*] --> queued: submit", "    [*] --> running: submit, a slot is free"]
    for status, moves in TABLE.items():
        lines += [f"    {status} --> {target}: {move}" for move, target in moves.items()]
    return "\n".join(lines)
