"""A Pydantic AI agent that hands off slow work, goes on talking, and is told when it ends.

python examples/pydantic_ai_agent.py

The models are functions with scripts, so that this runs without a key. Put real ones in their place.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from meantime import Meantime, background
from meantime.integrations.pydantic_ai import Talk

TESTED, EXPLORED = asyncio.Event(), asyncio.Event()  # how long it takes is up to the script


@background
async def run_tests(folder: str) -> str:
    """Runs the tests of a folder."""
    await TESTED.wait()
    return f"{folder}: 128 passed"


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """The script of the one that talks."""
    last = messages[-1].parts[-1]
    said = str(getattr(last, "content", ""))
    if "Please test" in said:
        tests = ToolCallPart("run_tests", {"folder": "src"})
        explorer = ToolCallPart("start_agent", {"agent": "explore", "prompt": "open questions?"})
        return ModelResponse(parts=[tests, explorer])
    if last.part_kind == "tool-return":
        return ModelResponse(parts=[TextPart("Both are on their way.")])
    if "128 passed" in said:
        EXPLORED.set()
        return ModelResponse(parts=[TextPart("The tests are through: src: 128 passed.")])
    if "<task-notification" in said:
        return ModelResponse(parts=[TextPart("The explorer found: two open questions.")])
    running = (info.instructions or "").count("\n- ")  # the reminder has a line for each
    return ModelResponse(parts=[TextPart(f"{running} tasks are still running.")])


async def explorer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    """The script of the one that works in the background."""
    yield "I look around. "
    await EXPLORED.wait()
    yield "There are two open questions."


async def main() -> None:
    agent = Agent(FunctionModel(model), instructions="You help with a repository.")
    explore = Agent(FunctionModel(stream_function=explorer))
    with tempfile.TemporaryDirectory(prefix="meantime-pydantic-") as folder:
        async with Meantime.open(Path(folder) / "work.db", agents={"explore": explore}) as mt:
            talk = Talk(agent, mt.thread("conversation-1"), run_tests, agents=["explore"], threshold=0.1)
            for said in ("Please test src, and look for open questions.", "How is it going?"):
                print(f" user > {said}")
                print(f"agent > {await talk.say(said)}")
            TESTED.set()
            told = 0
            async for answer in talk.woken():  # nobody types: it is woken by what has ended
                print(f"agent > {answer}")
                told += 1
                if told == 2:
                    break


if __name__ == "__main__":
    asyncio.run(main())
