"""`python -m benchmarks [name …]`: all of them, or those named.

With CHECK=1 in the environment the ratios are compared with the recorded run, with RECORD=1 they are
recorded. Both run the benchmarks that have recorded ratios, unless others are named.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys

from .measure import RATIOS, TABLES
from .recorded_run import compare, load, ratios_of, record, recorded_names

NAMES = (
    "latency",
    "starts",
    "load",
    "flame",
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
    "disk",
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


def main() -> int:
    checks, records = (bool(os.environ.get(name)) for name in ("CHECK", "RECORD"))
    names = sys.argv[1:] or (recorded_names(watched=checks) if checks or records else NAMES)
    for name in names:
        load1 = os.getloadavg()[0]
        asyncio.run(importlib.import_module(f"benchmarks.{name}").run())
        if records:
            record(name, RATIOS, TABLES.get(name, []), load1)
    worse = compare(ratios_of(load(), names), RATIOS) if checks else []
    if checks:
        print("\nWorse than the recorded run:" if worse else "\nNothing is worse than in the recorded run.")
    for line in worse:
        print(f"  {line}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
