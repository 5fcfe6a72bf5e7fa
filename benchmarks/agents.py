"""Agents in this process: what a turn costs over the bare agent, and what each one that waits takes."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from meantime import Agent, Meantime

from .measure import UNLIMITED, cpu, folder, p50, table, us, verdict

TASKS, STEPS = 15, 20  # runs of each kind; requests to the model in one of them
WAITING = 1_000


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls its tool until it has done so often enough."""
    if len(messages) >= 2 * STEPS - 1:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(
        parts=[ToolCallPart("look", {"at": f"x{len(messages)}"}, tool_call_id=f"c{len(messages)}")]
    )


def pydantic() -> PydanticAgent[None, str]:
    agent = PydanticAgent(FunctionModel(scripted))

    @agent.tool_plain
    async def look(at: str) -> str:
        return f"saw {at}"

    return agent


async def loop(talk: Any) -> str:
    for step in range(STEPS - 1):
        talk.spent(turns=1, tokens=10)
        talk.call("look", {"at": f"x{step}"}, id=f"c{step}")
        talk.result("look", "saw x", id=f"c{step}")
    return "done"


class Nobody:
    """Hears a bare loop, and does nothing."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    def spent(self, **more: object) -> None:
        self.heard.append(more)

    def call(self, *given: object, **more: object) -> None:
        self.heard.append(given)

    result = call


async def run() -> None:
    await _turns()
    await _memory()


async def _turns() -> None:
    agent = pydantic()
    times: dict[str, list[float]] = {}
    with folder() as path:
        async with Meantime.open(
            path / "work.db", settings=UNLIMITED, agents={"pydantic": agent, "loop": loop}
        ) as mt:
            thread = mt.thread("bench")

            async def task(name: str) -> None:
                await (await thread.start(Agent(name, "go"))).result()

            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "Pydantic AI, bare": lambda: agent.run("go"),
                "Pydantic AI, as a task": lambda: task("pydantic"),
                "a loop, bare": lambda: loop(Nobody()),
                "a loop, as a task": lambda: task("loop"),
            }
            for name, way in ways.items():
                await way()  # what is loaded once is not counted
                times[name] = []
            for _ in range(TASKS):
                for name, way in ways.items():
                    began = cpu()  # of all threads: how long others keep us waiting is not ours
                    await way()
                    times[name].append((cpu() - began) / STEPS)
    rows: list[list[str]] = []
    for name, taken in times.items():
        bare = p50(times[f"{name.partition(',')[0]}, bare"])
        over = p50(taken) - bare
        judged = verdict(over * 1e3, 1) if name.endswith("task") else ""
        rows.append([name, us(p50(taken)), us(over) if judged else "", f"{p50(taken) / bare:.2f}×", judged])
    table(
        f"A request to the model with a tool call, in a run of {STEPS} (processor time, p50 of {TASKS})",
        ["", "each", "over bare", "ratio", "target (ms)"],
        rows,
    )


async def _memory() -> None:
    """Each way in a process of its own: what one has freed would hide what the other takes."""
    each: dict[str, float] = {}
    for way in ("bare", "task"):
        command = [sys.executable, "-m", "benchmarks.agents", way]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
        each[way] = float(done.stdout) / 1024
    extra = each["task"] - each["bare"]
    rows = [
        ["Pydantic AI, bare", f"{each['bare']:.1f} KB", "", ""],
        ["Pydantic AI, as a task", f"{each['task']:.1f} KB", f"{extra:.1f} KB", verdict(extra, 100)],
    ]
    table(
        f"Memory of {WAITING:,} agents that wait for a slow model, each (RSS; as tasks, 64 ask it at once)",
        ["", "each", "above bare", "target (KB)"],
        rows,
    )


async def _waiting(way: str) -> float:
    gate = asyncio.Event()

    async def slow(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "wait "
        await gate.wait()
        yield "done"

    agent = PydanticAgent(FunctionModel(stream_function=slow))
    await _stopped(agent)
    if way == "bare":
        before = _resident()
        running = [asyncio.create_task(_run(agent)) for _ in range(WAITING)]
        await _settled()
        grown = _resident() - before
        gate.set()
        await asyncio.gather(*running)
        return grown / WAITING
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED, agents={"slow": agent}) as mt:
            thread = mt.thread("bench")
            first = await thread.start(Agent("slow", "go"))
            await asyncio.sleep(1)
            before = _resident()
            handles = [await thread.start(Agent("slow", "go")) for _ in range(WAITING)]
            await _settled()
            grown = _resident() - before
            gate.set()
            await thread.wait(first, *handles)
    return grown / WAITING


async def _run(agent: PydanticAgent[None, str]) -> None:
    async with agent.run_stream("go") as result:
        async for _ in result.stream_text():
            pass


async def _stopped(agent: PydanticAgent[None, str]) -> None:
    """What is loaded and cached with the first run is not counted."""
    running = asyncio.create_task(_run(agent))
    await asyncio.sleep(0.2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def _settled() -> None:
    """Until it hardly grows any more."""
    size = 0
    while abs((now := _resident()) - size) > 1 << 18:
        size = now
        await asyncio.sleep(1)


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


if __name__ == "__main__":
    print(asyncio.run(_waiting(sys.argv[1])))
