"""The mcp plugin: tools of MCP servers, inline or in the background, as tasks of the tool runner."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from meantime.blocking import Meantime
from meantime.dialects.jaato.background_config import check_threshold
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Failed
from meantime.kernel.work import Orderable, Tool, ToolInfo

from .background_mixin import RunsInBackground
from .plugin_hooks import Executors


class MCPPlugin(RunsInBackground):
    """The tools that the named servers have now, each as `<server>_<tool>`; `refresh` looks again.

    thresholds: seconds by server ("files") or by tool ("files/search"), the tool's first; None is never.
    """

    def __init__(
        self, mt: Meantime, *servers: str, thresholds: Mapping[str, float | None] | None = None
    ) -> None:
        if not servers:
            raise InvalidInput("MCPPlugin needs a server.", hint='Name one: MCPPlugin(mt, "files").')
        self._mt = mt
        self._servers = servers
        self._thresholds = {
            name: check_threshold(value, f"mcp.{name}") for name, value in (thresholds or {}).items()
        }
        self.tools: dict[str, ToolInfo] = {}
        self.refresh()

    @property
    def name(self) -> str:
        return "mcp"

    def refresh(self) -> None:
        """A registry takes the tools that there are when the plugin is added: remove it, refresh, add."""
        found: dict[str, ToolInfo] = {}
        for server in self._servers:
            for tool in self._mt.tools(server):
                name = f"{server}_{tool.name}"
                if name in found:
                    raise InvalidInput(
                        f"{found[name].full_name} and {tool.full_name} are both {name}.",
                        hint="Rename one of the servers.",
                    )
                found[name] = tool
        unknown = set(self._thresholds) - set(self._servers) - {tool.full_name for tool in found.values()}
        if unknown:
            raise InvalidInput(
                f"thresholds name what is not there: {', '.join(sorted(unknown))}.",
                hint='Name a server ("files") or a tool of one ("files/search").',
            )
        self.tools = found

    def get_executors(self) -> Executors:
        return {name: partial(self._run, name) for name in self.tools}

    def get_auto_background_threshold(self, tool_name: str) -> float | None:
        tool = self.tools.get(tool_name)
        if tool is None:
            return None
        for name in (tool.full_name, tool.server):
            if name in self._thresholds:
                return self._thresholds[name]
        return super().get_auto_background_threshold(tool_name)

    def background_work(self, tool_name: str, arguments: dict[str, Any]) -> Orderable[Any]:
        return Tool(self.tools[tool_name].full_name, arguments)

    def background_title(self, tool_name: str, arguments: dict[str, Any]) -> str:
        return self.tools[tool_name].full_name

    def answer_to_failure(self, tool_name: str, failed: Failed) -> Any:
        """A tool's report of its failure is its answer; a failure of the server or connection is not."""
        return {"error": failed.message} if failed.code == "tool_error" else None

    def _run(self, tool_name: str, arguments: dict[str, Any]) -> Any:
        """Plainly, for as long as it takes: for callers that know nothing of the background."""
        return self.call_inline(tool_name, self.background_work(tool_name, arguments), None)
