"""How tasks look in a line: ids, statuses, times, colours."""

from __future__ import annotations

import os
import time

from .terminal_text import columns, fitted, on_terminal, padded, plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Wire = dict[str, Any]  # a task as the HTTP API gives it
else:
    Wire = dict
SLOWER = 2  # times as long as usual, from where that is said
SHOWN = 8  # characters of an id, as people see it

ACTIVE = ("queued", "running", "waiting", "cancelling")
LOOKS = {  # state: glyph, colour
    "queued": ("○", "2"),
    "running": ("●", "36"),
    "waiting": ("◆", "33"),
    "cancelling": ("◌", "33"),
    "completed": ("✓", "32"),
    "failed": ("✗", "31"),
    "cancelled": ("⊘", "33"),
    "timed_out": ("✗", "31"),
    "lost": ("✗", "31"),
}


def bare(id: str) -> str:
    return id.removeprefix("t_")


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Each without its `t_`, the first eight characters, and more where neighbours share those."""
    found: dict[str, str] = {}
    ordered = sorted(set(ids), key=bare)
    for place, id in enumerate(ordered):
        mine, length = bare(id), SHOWN
        for other in (*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2]):
            while length < len(mine) and bare(other).startswith(mine[:length]):
                length += 1
        found[id] = mine[:length]
    return found


def short(id: str) -> str:
    return bare(id)[:SHOWN]


def status(task: Wire) -> str:
    state = str(task.get("state", ""))
    word = {"timed_out": "timed out"}.get(state, state)
    if state == "running" and (task.get("resumeCount") or task.get("run", 1) > 1):
        word = "resumed"
    quiet = silence(task)
    if quiet is not None:
        word = f"silent {span(quiet)}"
    return f"{LOOKS.get(state, ('?', ''))[0]} {word}"


def silence(row: Wire) -> float | None:
    """Seconds without a sign of life of a running task, once they are enough to be shown."""
    after = row.get("silentAfterMs")
    last = moment(row.get("lastEventAt")) if after and row.get("state") == "running" else None
    if last is None:
        return None
    seconds = time.time() - last
    return seconds if seconds * 1_000 > row["silentAfterMs"] else None


def paint(text: str, task: Wire) -> str:
    return coloured(text, LOOKS.get(str(task.get("state")), ("", ""))[1])


def coloured(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if code and wants_colour() else text


def wants_colour() -> bool:
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def moment(iso: object) -> float | None:
    """Seconds since 1970."""
    if not isinstance(iso, str):
        return None
    from datetime import datetime

    return datetime.fromisoformat(iso).timestamp()


def local(moment: float) -> str:
    """In the time zone of the person who reads it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def age(task: Wire, now: float | None = None) -> float:
    """How long its run took, or has taken; of a queued one, how long it waits."""
    if task.get("duration") is not None:
        return task["duration"] / 1000
    began = moment(task.get("startedAt")) or moment(task.get("createdAt"))
    ended = moment(task.get("completedAt") or task.get("endedAt"))
    until = ended if ended is not None else time.time() if now is None else now
    return max(0.0, until - began) if began is not None else 0.0


def span(seconds: float) -> str:
    """Short enough for a column: 12.4s, 1m04, 2h05, 3d04h."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, secs = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours:02}h"
    return f"{hours}h{minutes:02}" if hours else f"{minutes}m{secs:02}"


def title(task: Wire) -> str:
    return plain(task.get("title") or task.get("description") or task.get("prompt") or task.get("kind") or "")


def doing(task: Wire) -> str:
    """Its activity now, or how it ended: one line. A row of the API has it already."""
    if "now" in task:
        return _of_row(task)
    if task.get("error"):
        return plain(task["error"])
    if task.get("state") == "queued":
        return plain(_waits_for(task))
    if task.get("question"):
        return "asks: " + plain(task["question"]["text"])
    progress: Wire = task.get("progress") or {}
    percent = progress.get("percent")
    said = plain(progress.get("message") or progress.get("phase") or "")
    if not said and progress.get("lastTools"):
        last: str = progress["lastTools"][-1]
        counted: dict[str, int] = progress.get("toolCallsByName") or {}
        times = counted.get(last, 1)
        said = plain(last) + (f" ×{times}" if times > 1 else "")
    if task.get("state") not in ACTIVE:
        return ""
    doing = " ".join([*([f"{percent:.0f} %"] if percent is not None else []), *([said] if said else [])])
    worker = task.get("worker")
    return " · ".join([*([f"on {plain(worker)}"] if worker else []), *([doing] if doing else [])])


def _waits_for(task: Wire) -> str:
    due = moment(task.get("notBefore"))
    if due is not None and due > time.time():
        return f"starts in {span(due - time.time())}"
    return f"waits for a worker of {task['place']}" if task.get("place") else "waits for a slot"


def _of_row(row: Wire) -> str:
    percent = [f"{row['percent']:.0f} %"] if row.get("percent") is not None and row["state"] in ACTIVE else []
    said = _in_local_time(plain(row["now"])) if row["state"] == "queued" else plain(row["now"])
    if row["state"] == "waiting" and said:
        said = f"asks: {said}"
    usual = [usually(row["usualMs"], age(row))] if row["state"] == "running" and row.get("usualMs") else []
    return " · ".join([*([" ".join([*percent, said]).strip()] if percent or said else []), *usual])


def _in_local_time(said: str) -> str:
    """The daemon names the time of a delayed start in UTC: it does not know where its reader is."""
    head, starts, when = said.partition("starts at ")
    try:
        due = moment(when) if starts and not head else None
    except ValueError:
        due = None
    return said if due is None else f"{starts}{local(due)}"


def usually(ms: object, seconds: float) -> str:
    """How long such work usually takes, and how much longer this one has taken."""
    if not isinstance(ms, int | float) or ms <= 0:
        return ""
    usual = ms / 1000
    slower = f"; {seconds / usual:.0f}× slower than usual" if seconds >= SLOWER * usual else ""
    return f"usually {span(usual)}{slower}"


def room() -> int | None:
    """Columns of the terminal; None where lines may be as long as they are."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said) > 0:
        return int(said)
    if not on_terminal():
        return None
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, shrink: int, right: int = -1) -> list[str]:
    """Columns as wide as they need to be. If they do not fit, the last takes what is left, and `shrink`
    gives before that; column `right` is set to the right."""
    cells = [list(row) for row in (head, *rows)]
    widths = [max(columns(row[at]) for row in cells) for at in range(len(head))]
    most = room()
    if most is not None:
        gaps = 2 * (len(head) - 1)
        spare = most - gaps - sum(widths[at] for at in range(len(head) - 1) if at != shrink)
        last = len(head) - 1
        if shrink != last:
            widths[shrink] = max(4, min(widths[shrink], max(spare - min(widths[last], 20), spare // 2)))
            spare -= widths[shrink]
        widths[last] = max(0, min(widths[last], spare))
    lines: list[str] = []
    for row in cells:
        fit = [fitted(cell, width) for cell, width in zip(row, widths, strict=True)]
        set_ = [
            " " * (width - columns(cell)) + cell if at == right else padded(cell, width)
            for at, (cell, width) in enumerate(zip(fit, widths, strict=True))
        ]
        line = "  ".join(set_).rstrip()
        lines.append(line if most is None else fitted(line, most))
    return lines


def listing(tasks: Sequence[Wire]) -> list[str]:
    """The table of `ps`; nothing where there are no tasks."""
    if not tasks:
        return []
    now, ids = time.time(), short_ids(task["id"] for task in tasks)
    rows = [(ids[task["id"]], status(task), span(age(task, now)), title(task), doing(task)) for task in tasks]
    lines = table(("ID", "STATUS", "TIME", "TASK", "NOW"), rows, shrink=3, right=2)
    for at, task in enumerate(tasks, 1):
        lines[at] = lines[at].replace(status(task), paint(status(task), task), 1)
    return lines
