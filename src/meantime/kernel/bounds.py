"""Limits of every text in a notice, an answer, a row or an event, for every kind of work.

An ending passes `bounded` before it is recorded. A text over its limit is cut to its beginning and end, and
the whole goes to a file that the ending names. So a dialect or a server can show an ending as it is.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from .model import Cancelled, Completed, Ending, Failed, InlineLimits, Json, Lost, Outcome, TimedOut
from .payloads import PREVIEW, as_text, is_over, preview, spill_record
from .questions import Question

ERROR = InlineLimits(max_bytes=4_000, max_lines=100)  # what went wrong, and why something was lost
DETAIL = 16_000  # characters of a traceback: its end, which names the error
WORD = 200  # characters of a code, of a reason to terminate, of who cancelled
OUTPUT = "Output that came before:"

Unfinished = Failed | Cancelled | TimedOut | Lost
AnyOutcome = TypeVar("AnyOutcome", bound=Completed | Failed | Cancelled | TimedOut | Lost)


class Bounded(NamedTuple):
    """An ending within its limits, and the text that belongs into its file, if any."""

    outcome: Outcome
    whole: str | None = None
    is_text: bool = True
    of_message: bool = False  # `whole` begins with the message, which is cut in the ending


def bounded(outcome: Outcome, limits: InlineLimits) -> Bounded:
    """The ending with every text within its limit. `limits` are for the result and the partial output."""
    if isinstance(outcome, Completed):
        is_short = len(outcome.terminate_reason) <= WORD  # a completed run has no other words
        return _completed(outcome if is_short else _short_words(outcome), limits)
    return _unfinished(_short_words(outcome), limits)


def filed(over: Bounded, path: str) -> Outcome:
    """The ending that names the file with the whole."""
    assert over.whole is not None
    spill = spill_record(path, over.whole, is_text=over.is_text)
    if over.of_message:  # the message has its two ends already
        spill = replace(spill, head="", tail="", of_message=True)
    return replace(over.outcome, spill=spill)


def unfiled(over: Bounded, why: str) -> Outcome:
    """The ending where no file could be written: it must not be lost with its payload, and says why."""
    assert over.whole is not None
    note = f"(the whole output could not be written to a file: {why[:WORD]})"
    outcome = over.outcome
    if over.of_message:
        return _with_message(outcome, f"{_message(outcome)}\n{note}")
    if isinstance(outcome, Completed):
        return replace(outcome, result=f"{preview(over.whole)}\n{note}", lossy=True)
    return replace(outcome, partial=f"{preview(over.whole)}\n{note}")


def cut(outcome: Outcome) -> Outcome:
    """The ending of a call that was waited for: within the limits, and without a file."""
    over = bounded(outcome, InlineLimits())
    if over.whole is None or over.of_message:
        return over.outcome
    said = middle_out(over.whole)
    if isinstance(over.outcome, Completed):
        return replace(over.outcome, result=said, lossy=True)
    return replace(over.outcome, partial=said)


def cut_ending(ending: Ending) -> Ending:
    return replace(ending, final_message=middle_out(ending.final_message))


def middle_out(text: str, most: int = InlineLimits().max_bytes) -> str:
    """An inline answer that a model can take: the two ends of a longer one, and how much is left out."""
    if len(text) <= most:
        return text
    tail = most // 5
    gap = f"\n… {len(text) - most} characters left out; in the background all of it is kept …\n"
    return text[: most - tail] + gap + text[-tail:]


def inline_answer(value: Json) -> Json:
    """The result of a call that was waited for, as a model is shown it."""
    text = as_text(value)
    return value if len(text) <= InlineLimits().max_bytes else middle_out(text)


def values(emitted: dict[str, Json]) -> dict[str, Json]:
    """Emitted values for a message: as they are, or, where they are too many together, shorter each."""
    limit = InlineLimits().max_bytes
    if len(msgspec.json.encode(emitted)) <= limit:
        return emitted
    share = limit // (3 * len(emitted))
    return {name[:WORD]: _ends(value, share) for name, value in emitted.items()}


def error_text(message: str) -> str:
    return preview(message) if is_over(message, ERROR) else message


def bounded_question(question: Question) -> Question:
    """A question that is stored and shown. Rules have judged the whole of it before."""
    arguments = question.arguments
    if arguments is not None and is_over(as_text(arguments), ERROR):
        arguments = preview(as_text(arguments))
    return replace(question, text=error_text(question.text), arguments=arguments)


# -- the steps


def _completed(outcome: Completed, limits: InlineLimits) -> Bounded:
    said, text = outcome.final_message, as_text(outcome.result)
    over = outcome.spill is None and is_over(text, limits)
    if said and is_over(said, limits):
        if not over and outcome.spill is None:
            return Bounded(replace(outcome, final_message=preview(said)), said, of_message=True)
        # An agent's last message mostly is its result, which the file has.
        outcome = replace(outcome, final_message="" if said == text else preview(said))
    if not over:
        return Bounded(outcome)
    return Bounded(replace(outcome, result=None), text, is_text=isinstance(outcome.result, str))


def _unfinished(outcome: Unfinished, limits: InlineLimits) -> Bounded:
    message, partial = _message(outcome), outcome.partial
    text = "" if partial is None else as_text(partial)
    over = outcome.spill is None and is_over(text, limits)
    if isinstance(outcome, Failed) and is_over(outcome.final_message, limits):
        same = outcome.final_message == text
        outcome = replace(outcome, final_message="" if same else preview(outcome.final_message))
    if is_over(message, ERROR):
        outcome = _with_message(outcome, preview(message))
        if outcome.spill is not None:  # a command's own file, whose messages are ours and short
            return Bounded(outcome)
        whole = f"{message}\n\n{OUTPUT}\n{text}" if text else message
        return Bounded(replace(outcome, partial=preview(text) if over else partial), whole, of_message=True)
    if not over:
        return Bounded(outcome)
    return Bounded(replace(outcome, partial=None), text, is_text=isinstance(partial, str))


def _message(outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return outcome.final_message
        case Failed():
            return outcome.message
        case Cancelled() | Lost():
            return outcome.reason
        case TimedOut():
            return ""
        case _:
            assert_never(outcome)


def _with_message(outcome: AnyOutcome, text: str) -> AnyOutcome:
    if isinstance(outcome, Completed):
        return replace(outcome, final_message=text)
    if isinstance(outcome, Failed):
        return replace(outcome, message=text)
    return outcome if isinstance(outcome, TimedOut) else replace(outcome, reason=text)  # a timeout has none


def _short_words(outcome: AnyOutcome) -> AnyOutcome:
    """The words beside the payload."""
    given: dict[str, str] = {name: getattr(outcome, name, "") for name in ("code", "terminate_reason", "by")}
    long = {name: text[:WORD] for name, text in given.items() if len(text) > WORD}
    detail: str = getattr(outcome, "detail", "")
    if len(detail) > DETAIL:
        long["detail"] = detail[-DETAIL:]
    return replace(outcome, **long) if long else outcome


def _ends(value: Json, most: int) -> Json:
    text = as_text(value)
    if len(text) <= min(most, PREVIEW):
        return value
    half = min(most, PREVIEW) // 2
    return f"{text[:half]}…{text[-half:]}" if half else "…"
