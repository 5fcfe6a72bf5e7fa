"""What people type: durations, ids with completion, variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Duration(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """`90`, `90s`, `1h30m`, `7d`: seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        said = str(value).strip().lower()
        try:
            seconds = float(said)
        except ValueError:
            parts = _PART.findall(said)
            if not parts or "".join(number + unit for number, unit in parts) != said:
                self.fail(f"{value!r} is not a duration; try 90, 90s, 5m or 1h30m.", param, ctx)
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        if not 0 <= seconds < 1e10:
            self.fail(f"{value!r} is not a duration; it must not be negative.", param, ctx)
        return seconds


class TaskRef(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """An id, or the beginning of one. Completion never starts a daemon."""

    name = "id"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from .showing import short_ids, title
        from .speaking import Daemon
        from .trouble import Trouble

        try:
            tasks = Daemon(start=False).get("/v1/tasks", limit=200, patience=2)["tasks"]
        except Trouble:
            return []
        shown = short_ids(task["id"] for task in tasks)
        lead = "t_" if incomplete.startswith("t_") else ""
        return [
            CompletionItem(lead + shown[task["id"]], help=title(task)[:60])
            for task in tasks
            if (lead + shown[task["id"]]).startswith(incomplete)
        ]


DURATION = Duration()
TASK = TaskRef()
one_task = click.argument("ref", type=TASK, metavar="ID")
reconnect = click.option(
    "--reconnect",
    type=DURATION,
    default="30s",
    show_default=True,
    help="How long to wait for a daemon that went away.",
)
