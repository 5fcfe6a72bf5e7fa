"""Where the time of a task went: its runs as spans on one scale.

A span is made from what is recorded anyway: the times of a run, the lines of an agent's conversation, the
questions that it asked, the tasks that it started. A model's turn begins when everything it waited for is
there, and ends with the last line of its answer; a call ends with its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from .ids import display
from .lifecycle import Status
from .lines import Kind, PlacedLine
from .model import Task
from .payloads import one_line

MOST_SPANS = 2_000  # of one answer: the newest; older ones are counted
DETAIL = 200  # characters
MOST_BELOW = 50  # spans of each child: the newest
QUEUED = 0.05  # seconds in the queue from which on it is worth a span
_KEYS = (
    "command",
    "cmd",
    "path",
    "file_path",
    "filePath",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
)


class Span(Struct, frozen=True, gc=False, kw_only=True):
    """A stretch of time, in seconds since 1970."""

    id: str
    kind: str  # queue, turn, model, tool, wait or child
    name: str
    start: float
    end: float | None = None  # None while it goes on
    parent: str | None = None
    detail: str = ""
    note: str = ""
    error: bool = False
    task: str | None = None  # of a child
    run: int = 1
    seq: int = 0  # the place of the line that changed it last


class Totals(Struct, frozen=True):
    """Seconds by what was done in them. None counts twice: waiting before tools, tools before the model."""

    model: float = 0.0
    tool: float = 0.0
    wait: float = 0.0
    queue: float = 0.0


class Timeline(Struct, frozen=True):
    started_at: float
    ended_at: float | None
    spans: tuple[Span, ...]
    folded: int  # older spans that are left out
    totals: Totals


def timeline(
    runs: Sequence[Task],
    lines: Sequence[PlacedLine],
    children: Sequence[tuple[Task, Sequence[PlacedLine]]],
    now: float,
    *,
    most: int = MOST_SPANS,
) -> Timeline:
    """`runs`: the task as each of its runs left it, oldest first. `lines`: the newest of its conversation.
    `children`: the tasks that it started, each with lines of its own that are to be shown.
    """
    task = runs[-1]
    spans = _spans_of(runs, lines)
    spans += [_wait(task, reply, spans) for reply in task.answers if reply.asked_at]
    if task.question is not None:
        spans.append(_open_question(task, spans))
    totals = _totals(spans, now)
    for child, said in children:
        spans += _child(child, said, spans)
    spans.sort(key=lambda span: span.start)
    folded = max(0, len(spans) - most)
    return Timeline(runs[0].run.queued_at, task.run.ended_at, tuple(spans[folded:]), folded, totals)


def _spans_of(runs: Sequence[Task], lines: Sequence[PlacedLine]) -> list[Span]:
    spans: list[Span] = []
    for task in runs:
        run = task.run
        until = run.started_at if run.started_at is not None else run.ended_at
        if until is None or until - run.queued_at >= QUEUED:
            queue = Span(
                id=f"{run.number}.queue", kind="queue", name="waiting for a slot", start=run.queued_at,
                end=until, run=run.number,
            )  # fmt: skip
            spans.append(queue)
        own = [one for one in lines if one.line.run == run.number]
        if run.started_at is not None:
            spans += _Turns(task, run.started_at).read(own) if own else [_whole(task, run.started_at)]
    return spans


def _whole(task: Task, start: float) -> Span:
    """A run of which no lines are known: one span."""
    said = task.progress
    note = "" if said is None else one_line(said.message or said.phase, DETAIL)
    return Span(
        id=f"{task.run.number}.run",
        kind="tool",
        name=one_line(task.title, DETAIL),
        detail=_command(task),
        start=start,
        end=task.run.ended_at,
        error=_failed(task),
        note=note,
        run=task.run.number,
    )


class _Turns:
    """Reads the lines of one run: a model's turn, its calls, the next turn."""

    def __init__(self, task: Task, start: float) -> None:
        self._task = task
        self._run = task.run.number
        self._spans: dict[str, Span] = {}
        self._open: dict[str, str] = {}  # calls without a result, and their spans
        self._waits_for_model: float | None = start
        self._turn = ""
        self._count = 0

    def read(self, lines: Iterable[PlacedLine]) -> list[Span]:
        for place, line in lines:
            if line.kind is Kind.RESULT:
                self._result(place, line.call or line.tool, line.at, line.failed, line.text)
            elif line.role == "user":
                if not self._open:
                    self._waits_for_model = line.at
            elif line.role == "assistant":
                self._answer(place, line.at)
                if line.kind is Kind.CALL:
                    self._call(place, line.call or line.tool, line.tool, line.arguments, line.at)
        return self._finished()

    def _answer(self, place: int, at: float) -> None:
        if self._waits_for_model is not None:
            self._begin(self._waits_for_model, place, at)
        else:
            self._reach(f"{self._turn}.model", place, at)
        self._reach(self._turn, place, at)

    def _begin(self, start: float, place: int, end: float | None) -> None:
        self._count += 1
        start = start if end is None else min(start, end)
        self._turn = f"{self._run}.{self._count}"
        turn = Span(
            id=self._turn,
            kind="turn",
            name=f"Turn {self._count}",
            start=start,
            end=end,
            run=self._run,
            seq=place,
        )
        self._spans[turn.id] = turn
        model = replace(turn, id=f"{turn.id}.model", kind="model", name="model", parent=turn.id)
        self._spans[model.id] = model
        self._waits_for_model = None

    def _reach(self, id: str, place: int, at: float) -> None:
        span = self._spans[id]
        self._spans[id] = replace(span, end=max(span.end or at, at), seq=place)

    def _call(self, place: int, call: str, tool: str, arguments: object, at: float) -> None:
        id = f"{self._run}.{place}.call"
        self._open[call] = id
        self._spans[id] = Span(
            id=id, kind="tool", name=one_line(tool, DETAIL), detail=key_argument(arguments), start=at,
            parent=self._turn, run=self._run, seq=place,
        )  # fmt: skip

    def _result(self, place: int, call: str, at: float, failed: bool, text: str) -> None:
        id = self._open.pop(call, None)
        if id is None:
            return  # its call is older than the lines that were read
        span = self._spans[id]
        note = one_line(text, DETAIL) if failed else _size(text)
        self._spans[id] = replace(span, end=max(at, span.start), error=failed, note=note, seq=place)
        self._reach(span.parent or "", place, at)
        if not self._open:
            self._waits_for_model = at

    def _finished(self) -> list[Span]:
        """Open spans go on, or ended with their run."""
        ended = self._task.run.ended_at
        if ended is None and self._waits_for_model is not None:
            self._begin(self._waits_for_model, 0, None)
        for id in self._open.values():
            span = self._spans[id]
            if ended is not None:
                self._spans[id] = replace(span, end=max(ended, span.start), note="no result")
            else:
                turn = self._spans[span.parent or ""]
                self._spans[turn.id] = replace(turn, end=None)
        if _failed(self._task) and self._turn:
            self._spans[self._turn] = replace(self._spans[self._turn], error=True)
        return list(self._spans.values())


def _wait(task: Task, reply: Any, spans: Sequence[Span]) -> Span:
    who = {"user": "by you", "rule": "by rule", "nobody": "by nobody"}.get(reply.by, f"by {reply.by}")
    how = "answered" if reply.allows is None else "allowed" if reply.allows else "rejected"
    return Span(
        id=f"{reply.run}.{reply.question}.wait"[:DETAIL],
        kind="wait",
        name="waiting for permission" if reply.allows is not None else "waiting for an answer",
        detail=one_line(reply.asked or reply.subject, DETAIL),
        start=reply.asked_at,
        end=max(reply.at, reply.asked_at),
        note=f"{how} {who}",
        parent=_around(spans, reply.asked_at, reply.at),
        run=reply.run,
    )


def _open_question(task: Task, spans: Sequence[Span]) -> Span:
    question = task.question
    assert question is not None
    return Span(
        id=f"{task.run.number}.{question.id}.wait"[:DETAIL],
        kind="wait",
        name="waiting for permission" if question.kind == "permission" else "waiting for an answer",
        detail=one_line(question.text, DETAIL),
        start=question.asked_at,
        parent=_around(spans, question.asked_at, None),
        run=task.run.number,
    )


def _child(child: Task, said: Sequence[PlacedLine], spans: Sequence[Span]) -> list[Span]:
    """The child as one span, and below it what is known of its own."""
    own = Span(
        id=f"{child.id}.child",
        kind="child",
        name=one_line(child.title, DETAIL),
        detail=display(child.id),
        start=child.created_at,
        end=child.run.ended_at,
        error=_failed(child),
        note=child.status.replace("_", " "),
        task=child.id,
        parent=_around(spans, child.created_at, None),
    )
    below = _Turns(child, child.run.started_at or child.created_at).read(said) if said else []
    return [own, *(_below(span, own) for span in below[-MOST_BELOW:])]


def _below(span: Span, child: Span) -> Span:
    parent = f"{child.task}.{span.parent}" if span.parent else child.id
    return replace(span, id=f"{child.task}.{span.id}", parent=parent)


def _around(spans: Sequence[Span], at: float, until: float | None) -> str | None:
    """The call, otherwise the turn, in which this happened: the one that began last."""
    for kind in ("tool", "turn"):
        found = [
            span
            for span in spans
            if span.kind == kind
            and span.task is None
            and span.start <= at
            and (span.end is None or span.end >= (at if until is None else until))
        ]
        if found:
            return max(found, key=lambda span: span.start).id
    return None


def key_argument(arguments: object) -> str:
    """The argument of a call that says most: a command, a path, a pattern; otherwise its first text."""
    if isinstance(arguments, str):
        return one_line(arguments, DETAIL)
    if not isinstance(arguments, dict):
        return ""
    given = cast("dict[str, object]", arguments)
    named = [given[key] for key in _KEYS if isinstance(given.get(key), str | list)]
    texts = [value for value in given.values() if isinstance(value, str)]
    first = next(iter([*named, *texts]), "")
    if isinstance(first, list):
        first = " ".join(str(word) for word in cast("list[object]", first)[:20])
    return one_line(str(first), DETAIL)


def _command(task: Task) -> str:
    return key_argument(task.work.input) if task.work.kind == "shell" else ""


def _size(text: str) -> str:
    if not text:
        return ""
    lines = text.count("\n") + 1
    return f"{lines:,} lines" if lines > 1 else one_line(text, 60)


def _failed(task: Task) -> bool:
    return task.status in (Status.FAILED, Status.TIMED_OUT, Status.LOST)


def _totals(spans: Sequence[Span], now: float) -> Totals:
    """By kind, each instant once."""
    taken: list[tuple[float, float]] = []
    seconds: dict[str, float] = {}
    for kind in ("wait", "tool", "model", "queue"):
        own = [(span.start, now if span.end is None else span.end) for span in spans if span.kind == kind]
        before = _length(taken)
        taken = _joined([*taken, *own])
        seconds[kind] = _length(taken) - before
    return Totals(**seconds)


def _joined(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for start, end in sorted(stretches):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif end > start:
            joined.append((start, end))
    return joined


def _length(stretches: Iterable[tuple[float, float]]) -> float:
    return sum(end - start for start, end in stretches)
