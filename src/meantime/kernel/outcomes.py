"""How a run ended, named from what its runner reported and what it had been asked."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from .model import Cancelled, CancelRequest, Completed, Failed, Json, Lost, Outcome, Spill, Task, TimedOut
from .payloads import Jsonable, jsonable, preview
from .plain_text import escape_surrogates

RESTARTED = "The process that ran it ended before it did; how far it got is not known."
SESSION_KEPT = "Its session is kept."  # whether who is told can resume it, is for a dialect to say
TIMEOUT = "timeout"  # `by` of a cancel that the clock asked for


class Report(Struct, frozen=True):
    """A runner's report when a run is over: one of these is set."""

    result: Jsonable | None = None
    error: Failed | None = None
    stopped: bool = False  # it stopped because it was asked to
    lost: str = ""
    partial: Json = None
    final_message: str = ""
    terminate_reason: str = ""
    session: str | None = None
    exception: BaseException | None = None  # for a foreground caller; never stored
    timed_out: bool = False  # stopped by its own clock, because nobody else was there to do it
    spill: Spill | None = None  # the output is in this file already, in place of the result or the partial
    reprs: tuple[str, ...] = ()  # types in the result of which only the repr is kept
    detached: bool = False  # it goes on without us, and nothing is to be recorded
    unbegun: bool = False  # a worker had claimed it and never began it: it may be offered again


class JudgedOutcome(NamedTuple):
    outcome: Outcome
    late: Json = None


def sound(report: object) -> Report:
    """A runner is somebody else's code: what it says is made storable before it is believed."""
    if not isinstance(report, Report):
        return Report(error=Failed(f"The runner gave no report but {type(report).__name__}.", "no_report"))
    error = report.error
    if not (error or report.lost or report.partial or report.final_message or report.terminate_reason):
        return report  # the common case: a result, which is JSON by its type
    if error is not None:
        code = error.exit_code
        error = Failed(
            _words(error.message),
            _words(error.code),
            _words(error.detail),
            code if type(code) is int else None,
            jsonable(error.partial).value,
            final_message=_words(error.final_message),
            terminate_reason=_words(error.terminate_reason),
            signal=error.signal if type(error.signal) is int else None,
        )
    return replace(
        report,
        error=error,
        lost=_words(report.lost),
        partial=jsonable(report.partial).value,
        final_message=_words(report.final_message),
        terminate_reason=_words(report.terminate_reason),
    )


def _words(text: object) -> str:
    return escape_surrogates(text if isinstance(text, str) else str(text))


def judge(task: Task, report: Report, emitted: dict[str, Json]) -> JudgedOutcome:
    verdict = _judge(task, report, emitted)
    if report.spill is None:
        return verdict
    outcome = verdict.outcome
    if isinstance(outcome, Completed):
        return JudgedOutcome(replace(outcome, result=None, spill=report.spill, lossy=report.spill.lost > 0))
    return JudgedOutcome(replace(outcome, partial=None, spill=report.spill))


def _judge(task: Task, report: Report, emitted: dict[str, Json]) -> JudgedOutcome:
    """Finished first wins against a cancel; an error does not, and is kept in the words of the ending.
    Against the clock nothing wins: what came after the deadline is kept as a late result."""
    cancel = task.run.cancel
    if report.timed_out or (cancel is not None and cancel.by == TIMEOUT):
        partial = report.result.value if report.result else report.partial
        late = partial if report.result else None
        return JudgedOutcome(TimedOut(task.run.timeout or 0.0, report.partial, emitted_vars=emitted), late)
    if report.result is not None:
        return JudgedOutcome(_completed(report, report.result, emitted))
    if report.error is not None:
        failed = _failed(report.error, report.partial, emitted)
        return JudgedOutcome(failed if cancel is None else _broke_off(cancel, failed))
    if report.lost:
        return JudgedOutcome(Lost(report.lost, report.partial, emitted))
    if cancel is not None:
        return JudgedOutcome(Cancelled(cancel.by, cancel.reason, report.partial, emitted_vars=emitted))
    return JudgedOutcome(
        Failed(
            "The work was cancelled, but not through Meantime: by itself, or with its event loop.",
            "cancelled_itself",
            partial=report.partial,
            emitted_vars=emitted,
        )
    )


def abandon(task: Task, emitted: dict[str, Json]) -> Outcome:
    """It would not stop within the grace: the ending says so, and the work is no longer waited for."""
    cancel = task.run.cancel
    if cancel is not None and cancel.by == TIMEOUT:
        return TimedOut(task.run.timeout or 0.0, abandoned=True, emitted_vars=emitted)
    by, reason = (cancel.by, cancel.reason) if cancel else ("", "")
    return Cancelled(by, reason, abandoned=True, emitted_vars=emitted)


def is_unheard(outcome: Outcome | None) -> bool:
    """Whether the run itself has not said how it ended, and may yet."""
    if isinstance(outcome, Cancelled | TimedOut):
        return outcome.abandoned
    return isinstance(outcome, Lost)


def _completed(report: Report, result: Jsonable, emitted: dict[str, Json]) -> Completed:
    return Completed(
        result.value,
        lossy=not result.faithful,
        emitted_vars=emitted,
        final_message=report.final_message,
        terminate_reason=report.terminate_reason or "GOAL",
        reprs=report.reprs,
    )


def _broke_off(cancel: CancelRequest, failed: Failed) -> Cancelled:
    """A cancel means that the work should be over: that it did not stop cleanly is a detail of that."""
    return Cancelled(
        cancel.by,
        cancel.reason,
        failed.partial,
        emitted_vars=failed.emitted_vars,
        error=preview(failed.message),
    )


def _failed(error: Failed, partial: Json, emitted: dict[str, Json]) -> Failed:
    return replace(
        error,
        partial=partial if error.partial is None else error.partial,
        emitted_vars=emitted or error.emitted_vars,
    )
