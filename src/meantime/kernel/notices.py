"""The notice that a thread is told, once, and its own form as a message."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol, assert_never, cast

from msgspec import Struct, field

from .argument_checks import has_methods
from .durations import duration
from .errors import InvalidInput, NotFound
from .ids import display, is_unnamed
from .model import BatchCount, Cancelled, Completed, Failed, Lost, Outcome, Task, TimedOut
from .notice_sources import NoticeBody, NoticeRef, SourceKind, notice_id
from .outcomes import SESSION_KEPT
from .payloads import as_text, clean, fenced, one_line, preview

EVENT = "Automatic event; no human approved anything."
RESUMABLE = "Its session is kept: resume it to go on."
LATE = 5.0  # seconds from which on a notice says how late it comes
LEFT_RUNNING = "left_running"  # the name under which a runner says so
_LABELS = ("Output:\n", "Partial output:\n")  # of what a task printed, behind why it has no result


class NoticeState(StrEnum):
    UNREAD = "unread"
    LEASED = "leased"
    TOLD = "told"
    PARKED = "parked"  # delivery failed too often, or nobody claims from this thread; visible, not lost
    MUTED = "muted"  # the task was started with notify=False


class Part(Struct, frozen=True, omit_defaults=True):
    """One piece of a message; a hidden one is for the model only."""

    text: str
    hidden: bool = False  # for the model only


class Message(Struct, frozen=True, omit_defaults=True):
    """A message for the conversation: a role, and parts that people see or only the model."""

    role: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All parts together, as the model reads them."""
        return "\n".join(part.text for part in self.parts)

    @property
    def visible(self) -> str:
        """The parts that people see."""
        return "\n".join(part.text for part in self.parts if not part.hidden)


class Renderer(Protocol):
    """The part of a dialect that puts a notice into words."""

    def message(self, notice: Notice) -> Message: ...


class Notice(Struct, frozen=True):
    """One notice for one thread, which is told of it once: the ending of a run, or an event before it."""

    # As it was when this run ended; of an event as it is now.
    about: Task | None = field(name="task")
    number: int  # per thread, in the order of commits
    nonce: str  # made with the notice, so the output of a task cannot know it
    delivery: int = 1  # 2 and more: it was leased before and not acknowledged
    state: NoticeState = NoticeState.LEASED
    batch: BatchCount | None = None  # of an ending: as it stood then; None where that is not known
    body: NoticeBody | None = None  # the words of what is not an ending
    running: int = 0  # of an ending: the tasks of its thread that were active then, without watches

    @property
    def ref(self) -> NoticeRef:
        """Its source."""
        if self.body is not None:
            return self.body.ref
        return NoticeRef(SourceKind.ENDING, self.task.id, self.task.run.number)

    @property
    def kind(self) -> SourceKind:
        """Whether it is the ending of a run, or another kind of notice."""
        return SourceKind.ENDING if self.body is None else self.body.kind

    @property
    def id(self) -> str:
        """The same for every delivery of this notice: a host can look for it in its transcript."""
        return notice_id(self.task.id, self.task.run.number) if self.body is None else self.body.ref.id

    @property
    def task(self) -> Task:
        """The task that it is about, as it was when the run ended; of an event as it is now.

        Raises:
            NotFound: The notice is about no task, as an alarm is; `kind` says so.
        """
        if self.about is None:
            raise NotFound(f"Notice {self.id} is about no task.", hint="Look at notice.kind first.")
        return self.about

    @property
    def task_id(self) -> str:
        """The id of the task that it is about; of an alarm or a message, its own source's."""
        return self.task.id if self.body is None else self.body.of

    @property
    def thread(self) -> str:
        """The thread that is told."""
        return self.task.inbox if self.body is None else self.body.thread

    @property
    def run(self) -> int:
        """The number of the run that it is about."""
        return self.task.run.number if self.body is None else self.body.run

    @property
    def at(self) -> float:
        """When the run ended, or the event came."""
        return (self.task.run.ended_at or 0.0) if self.body is None else self.body.at

    @property
    def outcome(self) -> Outcome:
        """How the run ended.

        Raises:
            NotFound: The notice is not an ending; `kind` says so.
        """
        outcome = self.task.outcome if self.body is None else None
        if outcome is None:
            raise NotFound(f"Notice {self.id} is not an ending.", hint="Look at notice.kind first.")
        return outcome

    @property
    def text(self) -> str:
        """The content by itself, as text: the result, the error, or the event's words."""
        return payload_text(self.outcome) if self.body is None else self.body.text

    def message(self, dialect: Renderer | str | None = None) -> Message:
        """The message to put into the conversation: in our own words, or in those of a dialect, which
        you may name. Dialects have words for endings alone; all else is told in ours."""
        if isinstance(dialect, str):  # they live above this room, so they are looked up only now
            dialect = cast("Renderer", importlib.import_module("meantime.dialects").dialect(dialect))
        if dialect is not None and not has_methods(dialect, "message"):
            raise InvalidInput(
                f"A dialect is a name or a Dialect, not {type(dialect).__name__}.", hint='Such as "llxprt".'
            )
        if self.body is not None:
            return in_our_words(self.body, self.nonce)
        return canonical(self) if dialect is None else dialect.message(self)


class NoticePage(list[Notice]):
    """A part of the notices that were asked for. `total` is how many there are in all."""

    def __init__(self, notices: Iterable[Notice], total: int) -> None:
        super().__init__(notices)
        self.total = total


def in_our_words(body: NoticeBody, nonce: str) -> Message:
    """The message of a notice that is not an ending. Its text is untrusted, as output is."""
    head = [f'<task-notification id="{body.ref.id}"/>', f"{_what(body)} {EVENT}"]
    if body.count > 1:
        head.append(f"{body.count} events: the first and the last follow.")
        head.append(fenced(f"{body.first}\n…\n{body.text}", nonce))
    elif body.text and not _is_in_title(body):
        head.append(fenced(body.text, nonce))
    return Message("user", (Part("\n".join(head)),))


def _is_in_title(body: NoticeBody) -> bool:
    """A short reminder is its own title: a model need not pay for it twice."""
    return body.kind is SourceKind.ALARM and body.text.strip() == body.title


def _what(body: NoticeBody) -> str:
    title = one_line(body.title)
    late = f" It comes {duration(body.late)} late." if body.late >= LATE else ""
    match body.kind:
        case SourceKind.ALARM:
            return f'Reminder "{title}" is due.{late}'
        case SourceKind.MESSAGE:
            return f'Message from "{title}".'
        case _:
            # It may have ended since: a notice that was leased has the same words ever after.
            return f'"{title}" reports something. This is not its ending.'


def canonical(notice: Notice) -> Message:
    """Our own words. Everything outside the block comes from our store; the block is untrusted.

    Models pay for each of these words: tools/write_costs.py counts them, and a test keeps them few.
    """
    task, run = notice.task, notice.task.run
    head = [f'<task-notification id="{notice.id}"/>', f"{ending(task)} {EVENT}"]
    if notice.batch is not None and notice.batch.total > 1 and not is_unnamed(notice.batch.id):
        head.append(f"{notice.batch.ended} of {notice.batch.total} tasks of its batch have ended.")
    if run.timeout_note:
        head.append(run.timeout_note)
    left = left_running(notice.outcome)
    if left:
        pids = ", ".join(map(str, left))
        head.append(f"Processes that it started are still running: {pids}. Cancelling the task ends them.")
    reason = notice.outcome.reason if isinstance(notice.outcome, Cancelled | Lost) else ""
    if reason:
        head.append(clean(reason).replace("\n", " ").replace(SESSION_KEPT, RESUMABLE)[:500])
    body = _output(task, notice.outcome)
    if body:
        head.append(fenced(body, notice.nonce))
    if isinstance(notice.outcome, Completed) and notice.outcome.reprs:
        types = clean(", ".join(notice.outcome.reprs))
        head.append(f"Not JSON, so only its repr is kept: {types}.")
    spill = notice.outcome.spill
    if spill is not None:
        size = f"{spill.bytes} bytes, {spill.lines} lines"
        whole = f"what was kept of the output ({size}; {spill.lost} bytes were not)" if spill.lost else ""
        head.append(f"This is a part: {whole or f'the whole output ({size})'} is in {spill.path}")
    return Message("user", (Part("\n".join(head)),))


def left_running(outcome: Outcome) -> list[int]:
    """The processes that a command left behind, by their pids."""
    left = outcome.emitted_vars.get(LEFT_RUNNING)
    return [pid for pid in cast("list[object]", left) if type(pid) is int] if isinstance(left, list) else []


def summary(task: Task) -> str:
    """One line: what, how it ended, after how long."""
    return f"Background task {display(task.id)} {ending(task)}"


def ending(task: Task) -> str:
    """The same, for use beside the id."""
    title = one_line(task.title)
    again = f" (resume #{task.resume_count})" if task.resumed else ""
    # Nobody knows when one was lost: its seconds are those until somebody noticed, which may be days later.
    took = "" if isinstance(task.outcome, Lost) else f" after {duration(task.run.duration or 0.0)}"
    return f'"{title}"{again} {_how(task.outcome)}{took}.'


def _how(outcome: Outcome | None) -> str:
    match outcome:
        case Completed():
            return "completed"
        case Failed():
            code = f" with exit code {outcome.exit_code}" if outcome.exit_code is not None else ""
            code = f" (killed by signal {outcome.signal})" if outcome.signal is not None else code
            return f"failed{code}"
        case Cancelled():
            return "was cancelled" + (
                " (it did not stop in time and was left behind)" if outcome.abandoned else ""
            )
        case TimedOut():
            return f"timed out ({outcome.seconds:g} s)"
        case Lost():
            return "was lost"
        case None:
            return "is running"
        case _:
            assert_never(outcome)


def payload_text(outcome: Outcome) -> str:
    """The content of the ending, in the form a synchronous answer would have."""
    match outcome:
        case Completed():
            spill = outcome.spill
            shown = preview(spill) if spill and not spill.of_message else as_text(outcome.result)
            return shown or outcome.final_message
        case Failed():
            return _with_partial(outcome.message, outcome)
        case Cancelled():
            said = (outcome.reason, broke_off(outcome))
            return _with_partial("\n".join(filter(None, said)), outcome)
        case TimedOut():
            return _with_partial("", outcome)
        case Lost():
            return _with_partial(outcome.reason, outcome)
        case _:
            assert_never(outcome)


def without_result(task: Task, outcome: Outcome) -> str:
    """How it ended instead, in one line with its reason; then its output, if there is any."""
    text = payload_text(outcome)
    gap = "\n" if text.startswith(_LABELS) else " "
    return f"{summary(task)}{gap}{text}".strip()


def broke_off(outcome: Outcome | None) -> str:
    """The error that came while it was being cancelled; empty for every other ending."""
    error = outcome.error if isinstance(outcome, Cancelled) else ""
    return f"It failed while it was being cancelled: {error}" if error else ""


def _output(task: Task, outcome: Outcome) -> str:
    """The part that the task itself printed. A reason to cancel, or ours for a loss, is not its output; nor
    is the exit code of a command, which is shown above it. Why an agent's program ended is more than its
    code.
    """
    if isinstance(outcome, Cancelled | Lost):
        return _with_partial(broke_off(outcome), outcome)
    if isinstance(outcome, Failed) and _exited(outcome) and task.work.kind == "shell":
        return partial_text(outcome)
    return payload_text(outcome)


def _with_partial(text: str, outcome: Failed | Cancelled | TimedOut | Lost) -> str:
    partial = partial_text(outcome)
    label = _LABELS[0] if isinstance(outcome, Failed) and _exited(outcome) else _LABELS[1]
    return f"{text}\n{label}{partial}".lstrip("\n") if partial else text


def partial_text(outcome: Failed | Cancelled | TimedOut | Lost) -> str:
    """The output of the task, without its error."""
    spill = outcome.spill
    return preview(spill) if spill and not spill.of_message else as_text(outcome.partial)


def _exited(outcome: Failed) -> bool:
    """A command that failed by itself: its output is whole."""
    return outcome.exit_code is not None or outcome.signal is not None
