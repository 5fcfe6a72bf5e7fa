"""1,000 agents of this process, all waiting for a slow model: what each of them holds.

Every way is measured in a process of its own, by the pages that it has: a heap that was used before would
give them back for nothing.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from meantime import Agent, Limits, Meantime, Settings

from .measure import folder, table, verdict

AGENTS, FIRST = 1_000, 20  # so many, after so few that have loaded all there is to load
EVERYONE = Settings(limits=Limits(per_thread=-1, total=-1, per_kind={"agent": -1}, queued=-1))
WAYS = ("Pydantic AI, bare", "Pydantic AI, as a task", "a loop, as a task")


class Model:
    """Does not answer before it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers = asyncio.Event()

    async def wait(self) -> None:
        self.asked += 1
        await self.answers.wait()

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await self.wait()
        return ModelResponse(parts=[TextPart("done")])

    async def has_been_asked(self, times: int) -> None:
        while self.asked < times:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def _held() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def measure(way: str) -> float:
    model = Model()
    agent = PydanticAgent(FunctionModel(model.answer))

    async def loop(talk: Any) -> str:
        await model.wait()
        return "done"

    with folder() as path:
        async with Meantime.open(path / "work.db", settings=EVERYONE, agents={"p": agent, "l": loop}) as mt:
            thread = mt.thread("bench")
            running: list[asyncio.Task[Any]] = []

            async def begin(count: int) -> None:
                if way.endswith("bare"):
                    running.extend(asyncio.create_task(agent.run("go")) for _ in range(count))
                else:
                    name = "p" if way.startswith("Pydantic") else "l"
                    for _ in range(0, count, 20):
                        await asyncio.gather(*(thread.start(Agent(name, "go")) for _ in range(20)))

            await begin(FIRST)
            await model.has_been_asked(FIRST)
            before = _held()
            await begin(AGENTS)
            await model.has_been_asked(FIRST + AGENTS)
            used = _held() - before
            model.answers.set()
            await asyncio.gather(*running)
            while await thread.list(limit=1):
                await thread.wait(timeout=60)
    return used / AGENTS / 1024


async def run() -> None:
    held = {way: await asyncio.to_thread(_apart, way) for way in WAYS}
    bare = held[WAYS[0]]
    rows = [[WAYS[0], f"{bare:.0f} KB", "", ""]]
    for way in WAYS[1:]:
        above = held[way] - bare if way.startswith("Pydantic") else held[way]
        rows.append([way, f"{held[way]:.0f} KB", f"{above:.0f} KB", verdict(above, 100)])
    table(
        f"Memory of {AGENTS:,} agents that wait for their model at once, each",
        ["", "each", "ours", "target (KB)"],
        rows,
    )


def _apart(way: str) -> float:
    words = [sys.executable, "-m", "benchmarks.waiting", way]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    print(asyncio.run(measure(sys.argv[1])))
