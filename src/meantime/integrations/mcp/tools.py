"""The tools that a server has, as it last said."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from msgspec import Struct

from meantime.kernel.model import Json

NAMED = 20  # tools that a hint lists


class ToolInfo(Struct, frozen=True):
    """A tool of an MCP server, as an agent is told of it."""

    server: str
    name: str
    description: str = ""
    input_schema: Json = None
    as_task: bool = False  # by the rules of 2025-11-25, it may be asked to answer with a task

    @property
    def full_name(self) -> str:
        """What `Tool(…)` takes."""
        return f"{self.server}/{self.name}"


def near(name: str, known: Iterable[str]) -> str:
    """What somebody may have meant, else what there is, in words."""
    names = sorted(known)
    meant = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if meant:
        return f"Did you mean {' or '.join(meant)}?"
    if not names:
        return "There are none."
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"There are: {', '.join(names[:NAMED])}{more}."
