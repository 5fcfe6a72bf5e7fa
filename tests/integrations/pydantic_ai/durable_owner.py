"""A run to be killed: `python -m tests.integrations.pydantic_ai.durable_owner <folder> <moment>`. It kills
itself with -9 at that moment of its work, counted from 1; 0 is never. It says what the agent said.

What was done is kept outside of the ledger, in the file `effects`: one line for each request to the model,
and for each effect of a tool.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from meantime import Meantime
from meantime.integrations.pydantic_ai import Durability, durable_run

MOMENTS = 10


class Moments:
    def __init__(self, folder: Path, last: int) -> None:
        self._effects = folder / "effects"
        self._left = last

    def pass_one(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def effect(self, name: str) -> None:
        """One moment before it, and one after it."""
        self.pass_one()
        with self._effects.open("a") as kept:
            kept.write(f"{name}\n")
        self.pass_one()


def agent_of(moments: Moments) -> Agent[None, str]:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        place = sum(isinstance(message, ModelResponse) for message in messages)
        moments.effect(f"request {place}")
        if place == 0:
            return ModelResponse(parts=[ToolCallPart("charge", {"amount": 5}, "c1")])
        if place == 1:
            return ModelResponse(parts=[ToolCallPart("look_up", {"name": "x"}, "c2")])
        said = [part for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]
        return ModelResponse(parts=[TextPart(" | ".join(part.model_response_str() for part in said))])

    agent = Agent(FunctionModel(answer), name="shop", capabilities=[Durability()])

    @agent.tool_plain
    def charge(amount: int) -> str:
        moments.effect("charge")
        return f"charged {amount}"

    @agent.tool_plain(metadata={"meantime": {"retry": "idempotent"}})
    def look_up(name: str) -> str:
        moments.effect("look_up")
        return f"found {name}"

    return agent


async def main(folder: str, last: str) -> None:
    agent = agent_of(Moments(Path(folder), int(last)))
    async with Meantime.open(Path(folder) / "work.db") as mt:
        with durable_run(mt.thread("steps"), "order-17"):
            sys.stdout.write(f"{(await agent.run('Order x.')).output}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
