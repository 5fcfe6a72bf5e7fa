"""Agents in this process: what a request to the model costs over the bare agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from meantime import Agent, Meantime

from .measure import UNLIMITED, cpu, folder, p50, table, us, verdict

TASKS, STEPS = 31, 20  # runs of each kind; requests to the model in one of them


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
        without = times[f"{name.partition(',')[0]}, bare"]
        bare = p50(without)
        over = p50([ours - theirs for ours, theirs in zip(taken, without, strict=True)])  # of the same moment
        judged = verdict(over * 1e3, 1) if name.endswith("task") else ""
        rows.append([name, us(p50(taken)), us(over) if judged else "", f"{p50(taken) / bare:.2f}×", judged])
    table(
        f"A request to the model with a tool call, in a run of {STEPS} (processor time, p50 of {TASKS})",
        ["", "each", "over bare", "ratio", "target (ms)"],
        rows,
    )
