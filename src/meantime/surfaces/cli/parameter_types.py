"""Types of what people type: numbers, durations, choices, ids with completion.

`read` takes what is surely right, and raises ValueError otherwise. The last word on what is right, and the
error, are of the click type that `click_commands.py` makes of each.
"""

from __future__ import annotations

import math
import os
import re

from .verb import argument, option

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 1e10  # seconds
LONGEST_DELAY = 3_660 * 86_400.0  # kernel.due_times.FARTHEST, without what that loads
_PART = r"(\d+(?:\.\d+)?)(ms|[smhdw])"
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Whole:
    """A whole number from `least` on, up to `most` where there is one."""

    def __init__(self, least: int, most: int | None = None) -> None:
        self.least = least
        self.most = most

    def read(self, said: str) -> int:
        if not (said.isascii() and said.isdigit()) or int(said) < self.least:
            raise ValueError(said)
        if self.most is not None and int(said) > self.most:
            raise ValueError(said)
        return int(said)


class Number:
    """Any number from `least` to `most`."""

    def __init__(self, least: float, most: float) -> None:
        self.least = least
        self.most = most

    def read(self, said: str) -> float:
        if not self.least <= float(said) <= self.most:
            raise ValueError(said)
        return float(said)


class ChoiceType:
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, said: str) -> str:
        if said not in self.words:
            raise ValueError(said)
        return said


class FilePath:
    """The name of a file or a folder, which need not exist."""

    def read(self, said: str) -> str:
        if os.path.exists(said) and not os.access(said, os.R_OK):
            raise ValueError(said)
        return said


class Duration:
    """`90`, `90s`, `1h30m`, `7d`: seconds. `limit` says in words what the most is."""

    name = "duration"

    def __init__(self, most: float = LONGEST, limit: str = "") -> None:
        self._most = most
        self._limit = f": {limit}" if limit else ""

    def read(self, said: str) -> float:
        text = said.strip().lower()
        try:
            seconds = float(text)
        except ValueError:
            parts: list[tuple[str, str]] = re.findall(_PART, text)
            if not parts or "".join(number + unit for number, unit in parts) != text:
                raise ValueError(f"{said!r} is not a duration; try 90, 90s, 5m or 1h30m.") from None
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if seconds < 0:
            raise ValueError(f"{said!r} is not a duration; it must not be negative.")
        if not math.isfinite(seconds):
            raise ValueError(f"{said!r} is not a duration; try 90, 90s, 5m or 1h30m.")
        if seconds >= LONGEST or seconds > self._most:
            raise ValueError(f"{said!r} is too long{self._limit}.")
        return seconds


class TaskRef:
    """An id, or the beginning of one."""

    name = "id"

    def read(self, said: str) -> str:
        return said

    def candidates(self, begun: str) -> Iterator[tuple[str, str]]:
        """Ids that begin so, each with its task in words. They are not worth the start of a daemon."""
        from meantime.surfaces.daemon_client.daemon_client import Daemon
        from meantime.surfaces.terminal.errors import CliError
        from meantime.surfaces.terminal.task_format import short_ids, title

        try:
            tasks = Daemon(start=False).get("/v1/tasks", limit=200, patience=2)["tasks"]
        except CliError:
            return
        shown = short_ids(task["id"] for task in tasks)
        lead = "t_" if begun.startswith("t_") else ""
        for task in tasks:
            if (lead + shown[task["id"]]).startswith(begun):
                yield lead + shown[task["id"]], title(task)[:60]


DURATION = Duration()
DELAY = Duration(LONGEST_DELAY, "ten years are the most")
TASK = TaskRef()
one_task = argument("ref", type=TASK, metavar="ID")
reconnect = option(
    "--reconnect",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How long to wait for a daemon that went away.",
)
