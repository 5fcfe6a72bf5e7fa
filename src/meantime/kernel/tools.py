"""The tools of an MCP server, as it says."""

from __future__ import annotations

from msgspec import Struct

from .model import Json


class ToolInfo(Struct, frozen=True):
    """A tool of an MCP server, as an agent is told of it."""

    server: str
    name: str
    description: str = ""
    input_schema: Json = None
    as_task: bool = False  # by the rules of 2025-11-25, it may be asked to answer with a task

    @property
    def full_name(self) -> str:
        """The arguments of `Tool(…)`."""
        return f"{self.server}/{self.name}"
