"""Seed 001: asyncagents_task and its four companions. A notification has a visible part for people and a
hidden one with guidance for the model."""

from __future__ import annotations

import os
from collections.abc import Mapping

from meantime.kernel.durations import duration
from meantime.kernel.model import Cancelled, Completed
from meantime.kernel.notices import EVENT, Message, Notice, Part, partial_text, payload_text
from meantime.kernel.payloads import fenced, one_line
from meantime.toolset import task_text

from ._sessions import session_texts
from ._sessions.session_dialect import SessionDialect

__all__ = ["DIALECT"]

ATTACHED = "[hint attached]"
SWITCHES = ("NODE_ENV", "MEANTIME_ENV")


class AsyncAgents(SessionDialect):
    def message(self, notice: Notice) -> Message:
        shown = f"{_headline(notice)}\nTask Progress: {_progress(notice)}"
        if is_development():
            shown += f"\n{ATTACHED}"
        return Message("user", (Part(shown), Part(_hidden(notice), hidden=True)))


def is_development(environ: Mapping[str, str] = os.environ) -> bool:
    return any(environ.get(name) == "development" for name in SWITCHES)


def _headline(notice: Notice) -> str:
    task = notice.task
    took = duration(task.run.duration or 0.0)
    agent = f'Agent "{one_line(task.title)}"'
    match notice.outcome:
        case Cancelled():
            return f"⊘ **{agent} cancelled after {took}.**"
        case Completed() if task.resumed:
            return f"✓ **Resume #{task.resume_count} completed in {took}.**"
        case Completed():
            return f"✓ **{agent} finished in {took}.**"
        case _ if task.resumed:
            return f"✗ **Resume #{task.resume_count} failed in {took}.**"
        case _:
            return f"✗ **{agent} failed in {took}.**"


def _progress(notice: Notice) -> str:
    """n of the batch's m had ended when this one did; what was being resumed counted as running."""
    batch = notice.batch
    return f"{batch.ended}/{batch.total}" if batch is not None else "1/1"


def _hidden(notice: Notice) -> str:
    task, outcome = notice.task, notice.outcome
    lines: list[str] = []
    if not isinstance(outcome, Completed | Cancelled):
        lines += [
            f"Error: {session_texts.error_of(outcome)}",
            "Decide whether to try it in another way, or to go on.",
        ]
    elif isinstance(outcome, Cancelled):
        lines.append("It was cancelled: do not start it again unless you are asked to.")
    lines += [*task_text.reduced(task), *_hint(notice)]
    body = payload_text(outcome) if isinstance(outcome, Completed | Cancelled) else partial_text(outcome)
    if body:
        lines.append(fenced(body, notice.nonce))
    if outcome.spill is not None:
        lines.append(f"This is a part; the whole output is in {outcome.spill.path}")
    return "\n".join([f"Task ID: {task.id}", *lines, EVENT])


def _hint(notice: Notice) -> list[str]:
    batch = notice.batch
    if batch is None or batch.active or notice.running or notice.task.follow_up:
        return [
            f'If you need results immediately, use asyncagents_output(task_id="{notice.task_id}").',
            "You can continue working or just say 'waiting' and halt.",
            "WATCH OUT for leftovers, you will likely WANT to wait for all agents to complete.",
        ]
    return [f"All {batch.total} tasks finished.", "Use asyncagents_output tools to see agent responses."]


DIALECT = AsyncAgents("asyncagents", forks=True, reads_settle=True)
