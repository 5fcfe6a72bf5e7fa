"""Tasks as text: the common words of several dialects, and of the servers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from meantime.kernel.durations import duration
from meantime.kernel.errors import MeantimeError
from meantime.kernel.ids import crockford
from meantime.kernel.model import Chunk, Json, Task
from meantime.kernel.notice_sources import notice_id
from meantime.kernel.notices import Notice, ending
from meantime.kernel.payloads import clean, fenced, one_line
from meantime.kernel.reminder import SHOWN
from meantime.ports.dialect import Said

flat = one_line  # by which dialects of others know it: docs/guides/dialects.md


def line(task: Task, now: float) -> str:
    """One task in one line."""
    if task.ended:
        return f"{task.id}: {ending(task)}"
    parts = [f'{task.id}: "{one_line(task.title)}" is {task.status}']
    if task.run.started_at is not None:
        parts.append(f"for {duration(max(0.0, now - task.run.started_at))}")
    said = progress(task) if task.question is None else f"asks: {one_line(task.question.text)[:300]}"
    return " ".join(parts) + (f" ({said})" if said else "") + "."


def some(tasks: Sequence[Task], row: Callable[[Task], str]) -> list[str]:
    """The first of them as rows; the rest are counted."""
    more = [f"- and {len(tasks) - SHOWN} more"] if len(tasks) > SHOWN else []
    return [*map(row, tasks[:SHOWN]), *more]


def reduced(task: Task) -> list[str]:
    """A line that says that its timeout is less than requested; otherwise none."""
    return [f"Timeout: {task.run.timeout_note}"] if task.run.timeout_note else []


def progress(task: Task) -> str:
    found = task.progress
    if found is None:
        return ""
    percent = f"{found.percent:g} %" if found.percent is not None else ""
    return ", ".join(part for part in (percent, one_line(found.phase), one_line(found.message)) if part)


def block(text: str) -> str:
    """The output of a task, with a delimiter of its own; nothing for nothing."""
    return fenced(text, crockford(os.urandom(8))) if text else ""


def said(chunk: Chunk) -> str:
    """A stretch of a command's output, and its place in the whole."""
    lost = f" {chunk.lost_bytes} bytes before them are not kept." if chunk.lost_bytes else ""
    where = f"Bytes {chunk.offset} to {chunk.next} of {chunk.total}.{lost}"
    return f"{where}\n{block(chunk.text)}" if chunk.total else "It has said nothing yet."


def shown(task: Task, now: float) -> str:
    """An ending as its notice would tell it; what has not ended is a line."""
    if not task.ended:
        return line(task, now)
    return Notice(task, 0, crockford(os.urandom(8))).message().text


def endings(*tasks: Task) -> tuple[str, ...]:
    """The notices of those that have ended."""
    return tuple(notice_id(task.id, task.run.number) for task in tasks if task.ended)


def problem(error: MeantimeError) -> str:
    hint = f"\n{error.hint}" if error.hint else ""
    return f"{error.code}: {clean(error.message)}{clean(hint)}"


def refusal(error: MeantimeError) -> Said:
    return Said(problem(error), error.code, data={"error": error.code, "message": clean(error.message)})


def listed(tasks: Sequence[Task], now: float) -> str:
    return "\n".join(line(task, now) for task in tasks)


def cleaned(value: Json) -> Json:
    """Every text in it, keys too: a model may be shown what is meant for programs."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Json]", value).items()
        return {clean(key): cleaned(one) for key, one in pairs}
    if isinstance(value, list | tuple):
        return [cleaned(one) for one in cast("list[Json]", value)]
    return value
