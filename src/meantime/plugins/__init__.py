"""Tools of plugins in the background: the protocol of seed 003 on Meantime's runtime."""

from __future__ import annotations

from meantime.dialects.jaato.background_config import BackgroundConfig

from .background_mixin import RunsInBackground
from .background_plugin import BackgroundPlugin, UserCommand, create_plugin
from .cli_plugin import CLIPlugin
from .mcp_plugin import MCPPlugin
from .permission import Decision
from .protocol import BackgroundCapable, BackgroundExtras, TaskHandle, TaskResult, TaskStatus
from .registry import CapableTool, PluginRegistry, Tool, ToolPlugin
from .tool_executor import InlineCall, ToolExecutor

__all__ = [
    "BackgroundCapable",
    "BackgroundConfig",
    "BackgroundExtras",
    "BackgroundPlugin",
    "CLIPlugin",
    "CapableTool",
    "Decision",
    "InlineCall",
    "MCPPlugin",
    "PluginRegistry",
    "RunsInBackground",
    "TaskHandle",
    "TaskResult",
    "TaskStatus",
    "Tool",
    "ToolExecutor",
    "ToolPlugin",
    "UserCommand",
    "create_plugin",
]
