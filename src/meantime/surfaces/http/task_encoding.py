"""The one translator between the kernel's tasks and seed 001's `BackgroundTask`, in both directions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cache
from typing import Any, cast

from meantime.conversation.dialect_lookup import dialect_of
from meantime.kernel.durations import duration, iso
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Progress, Task, TimedOut
from meantime.kernel.notices import payload_text
from meantime.kernel.payloads import as_text, preview
from meantime.kernel.questions import Question
from meantime.kernel.watches import KIND as WATCH
from meantime.kernel.watches import description_of, spec_of

from .task_schemas import WireChoice, WireProgress, WireQuestion, WireTask

SHORT = 2_000  # characters of a result that a list or an event carries
SEED = "asyncagents"  # the dialect whose words for statuses these are


def wire_task(task: Task, *, whole: bool = False) -> WireTask:
    """`whole` is for one task alone; of many, long results are cut to their two ends."""
    run, outcome = task.run, task.outcome
    result, cut = _result(task, whole)
    failed = outcome if isinstance(outcome, Failed) else None
    return WireTask(
        session_id=task.session_id,
        parent_session_id=task.thread,
        parent_message_id=task.message_id,
        description=task.title,
        prompt=prompt_of(task) if whole else preview(prompt_of(task)),
        agent=task.agent_or_kind,
        status=word_of(task),
        batch_id=task.batch or None,
        resume_count=task.resume_count,
        is_forked=task.forked,
        started_at=iso(run.started_at if run.started_at is not None else run.queued_at),
        completed_at=iso(run.ended_at),
        retrieved_at=iso(run.retrieved_at),
        progress=_progress(task.progress),
        result=result,
        error=_error(task, whole),
        id=task.id,
        kind=task.work.kind,
        state=task.status,
        parent_task_id=task.parent,
        tool_call_id=task.tool_call_id,
        created_at=iso(task.created_at),
        updated_at=iso(task.updated_at),
        duration=milliseconds(run.duration),
        result_truncated=cut,
        output_file=outcome.spill.path if outcome is not None and outcome.spill is not None else None,
        error_detail=(failed.detail if whole else preview(failed.detail)) or None if failed else None,
        exit_code=exit_code(task),
        restartable=task.work.faithful or task.executor is not None,
        question=wire_question(task.question, whole=whole),
        worker=None if run.claim is None else run.claim.worker,
        not_before=None if run.not_before is None else iso(run.not_before.at),
        place=task.place or None,
        follow_up=(task.follow_up if whole else preview(task.follow_up)) or None,
    )


def exit_code(task: Task) -> int | None:
    """The exit code of a command that ended by itself: anything but 0 is a failure."""
    match task.outcome:
        case Failed(exit_code=code):
            return code
        case Completed() if task.work.kind == "shell":
            return 0
        case _:
            return None


def word_of(task: Task) -> str:
    """Seed 001's word for where a task stands."""
    return word(task.status, task.resumed)


@cache
def word(status: Status, resumed: bool) -> str:
    return dialect_of(SEED).status(status, 2 if resumed else 1)


@cache
def words() -> dict[str, frozenset[Status]]:
    """Every word, and what it stands for."""
    found: dict[str, set[Status]] = {}
    for status in Status:
        for resumed in (False, True):
            found.setdefault(word(status, resumed), set()).add(status)
    return {name: frozenset(statuses) for name, statuses in found.items()}


def statuses_of_word(named: Iterable[str]) -> tuple[frozenset[Status], bool | None]:
    """The statuses that seed 001's words mean, and whether of the active ones only first or later runs."""
    wanted = set(named)
    statuses = frozenset[Status]().union(*(words()[word] for word in wanted))
    both = {"running", "resumed"}
    return statuses, None if both <= wanted or not both & wanted else "resumed" in wanted


def prompt_of(task: Task) -> str:
    """The input of the work: a resume's follow-up, an agent's prompt, a command, what a watch looks at."""
    if task.run.prompt:
        return task.run.prompt
    if task.work.kind == WATCH:
        return description_of(spec_of(task))
    kept: object = task.work.input
    given = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
    told = given.get("prompt", given.get("command", ""))
    if isinstance(told, list):
        return shlex.join(str(word) for word in cast("list[object]", told))
    return str(told)


def error_of(task: Task) -> str | None:
    match task.outcome:
        case Failed(message=message):
            return message
        case TimedOut(seconds=seconds):
            return f"Timed out after {duration(seconds)}."
        case Lost(reason=reason):
            return reason
        case Cancelled(error=error) if error:
            return error
        case _:
            return None


def _error(task: Task, whole: bool) -> str | None:
    text = error_of(task)
    return text if whole or text is None else preview(text)


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)


def _result(task: Task, whole: bool) -> tuple[str | None, bool]:
    if not isinstance(task.outcome, Completed):
        return None, False
    text = payload_text(task.outcome)
    if task.outcome.spill is not None and not task.outcome.spill.of_message:
        return text, True
    return (text, False) if whole or len(text) <= SHORT else (preview(text), True)


def _progress(progress: Progress | None) -> WireProgress | None:
    if progress is None:
        return None
    return WireProgress(
        progress.calls,
        progress.tool_calls,
        progress.last_tools,
        iso(progress.updated_at),
        progress.percent,
        progress.phase,
        progress.message,
        progress.turns,
        progress.tokens,
        progress.cost,
    )


def wire_question(question: Question | None, *, whole: bool = True) -> WireQuestion | None:
    if question is None:
        return None
    arguments: Any = question.arguments
    if not whole and len(as_text(arguments)) > SHORT:
        arguments = preview(as_text(arguments))
    choices = tuple(
        WireChoice(one.id, one.label or one.id, one.allows, one.scope) for one in question.choices
    )
    return WireQuestion(
        question.id,
        question.kind,
        question.text if whole else preview(question.text),
        choices,
        question.several,
        question.subject,
        arguments,
        iso(question.asked_at),
        iso(question.deadline_at),
    )
