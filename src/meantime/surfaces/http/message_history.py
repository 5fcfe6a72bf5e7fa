"""The message history of a task: what it was told, what it said, how it ended. Nothing is masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from meantime.kernel.durations import iso
from meantime.kernel.errors import MeantimeError, Refused
from meantime.kernel.lines import Line
from meantime.kernel.model import Chunk, Completed, Failed, Task
from meantime.kernel.notices import payload_text
from meantime.kernel.payloads import as_text
from meantime.ports.tasks import Tasks

from .task_encoding import error_of, prompt_of
from .task_requests import MOST_HISTORY, PIECE, HistoryRange
from .task_schemas import LogMessage

MOST_LINES = 10_000


async def history(tasks: Tasks, task: Task, given: HistoryRange) -> list[LogMessage]:
    """Run by run, oldest first. `offset`, `limit` and `stream` choose a part of a command's output."""
    runs = await tasks.runs_of(task.id, None)
    if task.work.kind == "agent" and (lines := await _conversation(tasks, task)):
        chosen = chosen_lines(lines, given)
        return [*(_line(task, line) for line in chosen), *_said_aside(runs[-1]), *_ending(runs[-1])]
    found: list[LogMessage] = []
    for run in runs:
        found.append(_told(run))
        found += _said_aside(run)
        if run is runs[-1]:
            found += await _output(tasks, run, given)
        elif run.outcome is not None:
            found.append(_result(run, payload_text(run.outcome)))
        found += _ending(run)
    return found


async def _conversation(tasks: Tasks, task: Task) -> Sequence[Line]:
    """Empty where its runner keeps none: then there is its result, as of any task."""
    try:
        return await tasks.lines(task.id, None)
    except Refused:
        return ()


def chosen_lines(lines: Sequence[Line], given: HistoryRange) -> Sequence[Line]:
    """The lines of a role or a type, from an offset, and only so many of them."""
    if given.role is not None:
        lines = [line for line in lines if line.role == given.role]
    if given.type is not None:
        lines = [line for line in lines if line.kind == given.type]
    return lines[given.offset : given.offset + (given.limit or MOST_LINES)]


def _line(task: Task, line: Line) -> LogMessage:
    more: dict[str, Any] = {}
    if line.tool:
        more = {"name": line.tool, "call": line.call, "arguments": line.arguments}
    if line.failed:
        more["failed"] = True
    return _message(task, line.role, line.kind, line.text, at=line.at, run=line.run, **more)


def _told(task: Task) -> LogMessage:
    prompt = prompt_of(task)
    if not prompt and task.work.input is not None:
        prompt = as_text(task.work.input)
    return _message(task, "user", "prompt", prompt, at=task.run.queued_at, name=task.work.name)


def _said_aside(task: Task) -> list[LogMessage]:
    """Progress and the values that work named while it ran."""
    found: list[LogMessage] = []
    progress = task.progress
    if progress is not None:
        text = progress.message or progress.phase
        found.append(
            _message(
                task, "system", "progress", text, at=progress.updated_at, percent=progress.percent,
                phase=progress.phase, tool_calls=progress.tool_calls, last_tools=progress.last_tools,
            )
        )  # fmt: skip
    emitted = task.outcome.emitted_vars if task.outcome is not None else task.run.emitted
    found += [_message(task, "system", "emitted", as_text(v), name=k, value=v) for k, v in emitted.items()]
    return found


async def _output(tasks: Tasks, task: Task, given: HistoryRange) -> list[LogMessage]:
    """A command's from its log, by offset; everything else's as it can be read now."""
    try:
        return await _log(tasks, task, given)
    except Refused as problem:
        if problem.code != "no_log":
            raise
    if isinstance(task.outcome, Completed):
        try:
            return [_result(task, as_text(await tasks.result(task.id, None)))]
        except (MeantimeError, OSError):
            pass  # the file of a spilled result is gone: its beginning and end are still in the ledger
    output = await tasks.output(task.id, None)
    return [_result(task, output.text)] if output.value is not None else []


async def _log(tasks: Tasks, task: Task, given: HistoryRange) -> list[LogMessage]:
    stream, offset, left = given.stream, given.offset, given.limit or MOST_HISTORY
    found: list[Chunk] = []
    while left > 0:
        chunk = await tasks.read(task.id, None, stream, offset, min(left, PIECE))
        if not chunk.data and not chunk.lost_bytes:
            break
        found.append(chunk)
        left -= max(1, len(chunk.data))
        offset = chunk.next
    return [_stretch(task, stream, stretch) for stretch in _joined(found)]


def _joined(chunks: list[Chunk]) -> list[list[Chunk]]:
    """Pieces that follow each other are one stretch; where bytes were lost, the next begins."""
    stretches: list[list[Chunk]] = []
    for chunk in chunks:
        if stretches and not chunk.lost_bytes and stretches[-1][-1].next == chunk.offset:
            stretches[-1].append(chunk)
        else:
            stretches.append([chunk])
    return stretches


def _stretch(task: Task, stream: str, chunks: list[Chunk]) -> LogMessage:
    first, last = chunks[0], chunks[-1]
    data = b"".join(chunk.data for chunk in chunks)
    cut = half_character(data) if last.next < last.total else 0
    return _message(
        task, "assistant", "output", data[: len(data) - cut].decode("utf-8", "replace"), stream=stream,
        offset=first.offset, next=last.next - cut, total=last.total, lost_bytes=first.lost_bytes,
    )  # fmt: skip


def half_character(data: bytes) -> int:
    """How many bytes at the end belong to a character whose rest is still to be read."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needs = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < needs and back < len(data) else 0
        if byte < 0x80:
            return 0
    return 0


def _result(task: Task, text: str) -> LogMessage:
    return _message(task, "assistant", "result", text, at=task.run.ended_at)


def _ending(task: Task) -> list[LogMessage]:
    error = error_of(task)
    if error is None:
        return []
    detail = task.outcome.detail if isinstance(task.outcome, Failed) else ""
    return [_message(task, "system", "error", error, at=task.run.ended_at, detail=detail)]


def _message(
    task: Task,
    role: str,
    kind: str,
    text: str,
    *,
    at: float | None = None,
    run: int = 0,
    **more: Any,
) -> LogMessage:
    said: dict[str, Any] = {"role": role, "type": str(kind), "at": iso(at), "text": text}
    return LogMessage(**said, run=run or task.run.number, **more)
