"""Seed 000: background_task and its four companions. A notification carries the full result, and reading a
result does not replace it."""

from __future__ import annotations

from meantime.kernel.durations import duration
from meantime.kernel.notices import EVENT, Message, Notice, Part, payload_text
from meantime.kernel.payloads import fenced, one_line
from meantime.toolset import task_text

from ._sessions import session_texts
from ._sessions.session_dialect import SessionDialect

__all__ = ["DIALECT"]


class Background(SessionDialect):
    def message(self, notice: Notice) -> Message:
        task = notice.task
        what = f"Resume #{task.resume_count} of background task" if task.resumed else "Background task"
        took = duration(task.run.duration or 0.0)
        lines = [
            f'{what} {task.id} "{one_line(task.title)}" ended after {took}.',
            f"Status: {session_texts.word(task)}",
            *task_text.reduced(task),
        ]
        body = payload_text(notice.outcome)
        if body:
            lines.append(fenced(body, notice.nonce))
        if notice.outcome.spill is not None:
            lines.append(f"This is a part; the whole output is in {notice.outcome.spill.path}")
        return Message("user", (Part("\n".join([*lines, EVENT])),))


DIALECT = Background("background", forks=False, reads_settle=False)
