"""`python -m benchmarks [name …]`: all of them, or those named."""

from __future__ import annotations

import asyncio
import importlib
import sys

NAMES = (
    "latency",
    "end_to_end",
    "task_cost",
    "inline",
    "calls",
    "commands",
    "agents",
    "waiting",
    "watch",
    "output",
    "memory",
    "history",
    "remind",
    "scaling",
    "mcp_tools",
    "mcp_server",
    "mcp_front",
    "mcp_wrap",
    "opencode",
    "subagents",
    "peers",
    "verbs",
    "hooks",
    "serving",
    "dashboard",
    "dashboard_feed",
    "claude_code",
    "carriers",
    "workers",
    "adapters",
    "crash_matrix",
)


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        asyncio.run(importlib.import_module(f"benchmarks.{name}").run())


main()
