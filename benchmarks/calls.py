"""A tool call that ends in time, through the executor, beside calling the function bare."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

from meantime import Call
from meantime.blocking import Meantime, Thread
from meantime.plugins import PluginRegistry, RunsInBackground, ToolExecutor

from .measure import UNLIMITED, folder, p50, table, us, verdict

ROUNDS = 3_000
ARGS = {"path": "src", "depth": 3}
MOST = 200e-6  # seconds that a call may cost over the function itself


class Tools(RunsInBackground):
    """Tools that do nothing: what is measured is all that is not the tool."""

    @property
    def name(self) -> str:
        return "tools"

    def get_executors(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        return {"sync": self.sync, "async": self.later, "plain": self.plain}

    def get_auto_background_threshold(self, tool_name: str) -> float | None:
        return None if tool_name == "plain" else 10.0

    def sync(self, args: dict[str, Any]) -> int:
        return args["depth"]

    def plain(self, args: dict[str, Any]) -> int:
        return args["depth"]

    async def later(self, args: dict[str, Any]) -> int:
        return args["depth"]


async def run() -> None:
    """The executor is for blocking code, so it is measured on a thread of its own."""
    await asyncio.to_thread(_measure)


def _measure() -> None:
    with folder() as path, Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
        registry = PluginRegistry(mt, "bench")
        registry.add(tools := Tools())
        executor, thread = ToolExecutor(registry), mt.thread("bench")
        calls: dict[str, Callable[[], object]] = {
            "the function, bare": lambda: tools.sync(ARGS),
            "execute, no threshold": lambda: executor.execute("plain", ARGS),
            "execute, sync tool": lambda: executor.execute("sync", ARGS),
            "execute, async tool": lambda: executor.execute("async", ARGS),
            "thread.call of the runtime": lambda: _call(thread, tools),
        }
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(ROUNDS):  # interleaved, so that a busy moment hits all alike
            for name, call in calls.items():
                began = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - began)
        assert mt.list("all") == []  # nothing that ends in time is ever recorded
    base = p50(times["the function, bare"])
    rows = []
    for name, measured in times.items():
        over = p50(measured) - base
        ours = name.startswith("execute")
        high = statistics.quantiles(measured, n=20)[-1]
        rows.append([name, us(p50(measured)), us(high), verdict(over * 1e6, MOST * 1e6) if ours else ""])
    table(
        "ToolExecutor.execute that ends in time (µs over the bare function)",
        ["", "p50", "p95", "target"],
        rows,
    )


def _call(thread: Thread, tools: Tools) -> object:
    return thread.call(Call(tools.sync, ARGS), threshold=10)
