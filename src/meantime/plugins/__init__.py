"""Tools of plugins in the background: the protocol of seed 003 on Meantime's runtime."""

from __future__ import annotations

from meantime.dialects.jaato.config import BackgroundConfig

from .background import BackgroundPlugin, UserCommand, create_plugin
from .capable import RunsInBackground
from .cli import CLIPlugin
from .executor import InlineCall, ToolExecutor
from .mcp import MCPPlugin
from .permission import Decision
from .protocol import BackgroundCapable, BackgroundExtras, TaskHandle, TaskResult, TaskStatus
from .registry import CapableTool, PluginRegistry, Tool, ToolPlugin

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
