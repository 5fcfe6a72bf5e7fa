"""How the chat looks: rows of text. Background work looks like work that is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from meantime.kernel.ids import display
from meantime.kernel.model import Cancelled, Failed, Lost, Task, TimedOut
from meantime.kernel.notices import Notice, partial_text, payload_text
from meantime.kernel.payloads import one_line
from meantime.ports.dialect import Said
from meantime.surfaces.terminal.task_format import LOOKS, coloured, room, span
from meantime.surfaces.terminal.terminal_text import fitted, plain, plain_lines

DIM, BOLD, RED, CYAN = "2", "1", "31", "36"
SHOWN = 8  # lines of an output; the rest are counted
CALL, ANSWER = "●", "└"


def prompt() -> str:
    return f"{coloured('>', BOLD)} "


def said(text: str) -> list[str]:
    """The person's words, as the prompt left them."""
    first, *rest = plain_lines(text).split("\n")
    return [prompt() + first, *(f"  {row}" for row in rest)]


def agent(text: str) -> list[str]:
    """Broken between words; what has a shape of its own keeps it."""
    width = max(20, (room() or 80) - 1)
    rows: list[str] = []
    for line in plain_lines(text).split("\n"):
        rows += wrap(line, width, break_on_hyphens=False) if len(line) > width else [line]
    return [*rows, ""]


def info(text: str) -> list[str]:
    return [coloured(row, DIM) if row else "" for row in plain_lines(text).rstrip("\n").split("\n")]


def error(text: str) -> list[str]:
    return [coloured(row, RED) if row else "" for row in plain_lines(text).rstrip("\n").split("\n")]


def call(name: str, what: str) -> list[str]:
    """`● run  make test`"""
    return [f"{coloured(CALL, CYAN)} {coloured(name, BOLD)}  {_fit(plain(what), 4 + len(name))}"]


def output(text: str, failed: bool = False, lines: int = 0) -> list[str]:
    """The result of a call, below it. lines: all that there are, where the text is only their two ends."""
    rows = [row for row in plain_lines(text).split("\n") if row.strip()] or ["(no output)"]
    more = max(lines, len(rows)) - len(rows[-SHOWN:])
    if more > 0:
        rows = [f"… {more:,} lines before", *rows[-SHOWN:]]
    first, *rest = (_fit(row, 4) for row in rows)
    mark = coloured(ANSWER, RED if failed else DIM)
    return [f"  {mark} {first}", *(f"    {row}" for row in rest)]


def name(task: Task) -> str:
    return one_line(task.title)


def launched(said: Said) -> list[str]:
    """Below a call that was handed off, where its output would be: seed 002's line, whose Markdown says
    what is bold."""
    before, _, rest = plain(said.data["returnDisplay"]).replace("`", "").strip().partition("**")
    title, _, after = rest.rpartition("**")  # it may have stars of its own
    title = coloured(_fit(title, 5 + len(before) + len(after)), BOLD)
    return [f"  {coloured(ANSWER, DIM)} {before}{title}{after}"]


def came(said: Said) -> list[str]:
    """The result of a call: where it goes on, or its output."""
    data: dict[str, Any] = said.data or {}
    if "agentId" in data:
        return launched(said)
    told = ("returnDisplay", "output", "final_message", "message", "error")
    return output(str(next((data[key] for key in told if data.get(key)), "")), failed=bool(said.code))


def told(notice: Notice) -> list[str]:
    """The ending of a task, or what it says before its end."""
    if notice.body is None:
        return ending(notice.task)
    return info(f"{plain(notice.body.title)}: {plain(notice.text)}")


def ending(task: Task) -> list[str]:
    """`✓ make test (2qxz4s75) completed in 12.4s`, and what it said last."""
    glyph, colour = LOOKS[task.status]
    tail = f"({display(task.id)}) {how(task)} {span(task.run.duration or 0.0)}"
    title = coloured(_fit(plain(task.title), 4 + len(tail)), BOLD)
    failed = isinstance(task.outcome, Failed | TimedOut | Lost)
    spill = task.outcome.spill if task.outcome else None
    rows = output(_came(task), failed, spill.lines if spill else 0)
    return [f"{coloured(glyph, colour)} {title} {tail}", *rows]


def how(task: Task) -> str:
    match task.outcome:
        case Failed(exit_code=int(code)):
            return f"failed with exit code {code} after"
        case TimedOut():
            return "timed out after"
        case _:
            return "completed in" if task.status == "completed" else f"{task.status} after"


def _came(task: Task) -> str:
    outcome = task.outcome
    if outcome is None:
        return ""
    if isinstance(outcome, Cancelled) and not payload_text(outcome):
        return f"stopped by {'you' if outcome.by == 'user' else outcome.by or 'somebody'}"
    if isinstance(outcome, Failed) and outcome.exit_code is not None:  # the line above has the code
        return partial_text(outcome)
    return payload_text(outcome)


def counts(active: Sequence[Task], ended: int, followed: int) -> str:
    waiting = sum(task.status == "queued" for task in active)
    parts = [f"{len(active) - waiting} running"]
    parts += [f"{waiting} queued"] if waiting else []
    parts += [f"{ended} ended"]
    parts += [f"{followed} followed"] if followed else []
    return " · ".join(parts)


def _fit(row: str, taken: int) -> str:
    """`taken`: columns of the line that are not the row's."""
    width = room()
    return row if width is None else fitted(row, max(20, width - taken))
