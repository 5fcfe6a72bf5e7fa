"""Work that tries to end the process that runs it: `python -m tests.runtime.escaping LEDGER [blocking]` runs
all of it beside a command, in a program of its own, and says how each ended."""

from __future__ import annotations

import asyncio
import builtins
import json
import sys
from typing import Any

from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.waiting import LIMIT

from meantime import Agent, Call, Failed, Meantime, Shell, Task, background
from meantime.blocking import Meantime as Blocking
from meantime.ports.host import Delivery


class Odd(BaseException):
    """One that nobody expects."""


WAYS = ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "Odd"]


def escape(way: str) -> str:
    if way == "SystemExit":
        sys.exit(3)
    raise (Odd if way == "Odd" else getattr(builtins, way))


async def later(way: str) -> str:
    await asyncio.sleep(0)
    return escape(way)


# -- functions


@background(name="sync_function")
def sync_function(way: str) -> str:
    return escape(way)


@background(name="async_function")
async def async_function(way: str) -> str:
    return await later(way)


@background(name="function_with_tasks")
async def function_with_tasks(way: str) -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(later(way))
    return "unreachable"


# -- agents: the last thing said to them is the way


async def looping(talk: Any) -> str:
    return await later(talk.messages[-1].text)


async def generating(talk: Any) -> Any:
    yield "I begin"
    await later(talk.messages[-1].text)
    yield "unreachable"


async def threading(talk: Any) -> str:
    return await asyncio.to_thread(escape, talk.messages[-1].text)


async def grouping(talk: Any) -> str:
    async with asyncio.TaskGroup() as group:
        group.create_task(later(talk.messages[-1].text))
    return "unreachable"


def _asked(messages: list[ModelMessage]) -> str:
    prompt = messages[0].parts[-1]
    assert isinstance(prompt, UserPromptPart)
    return str(prompt.content)


def _calls(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart("leave", {"way": _asked(messages)})])


def _model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    escape(_asked(messages))
    return ModelResponse(parts=[TextPart("unreachable")])


async_tool = PydanticAgent(FunctionModel(_calls))
async_tool.tool_plain(name="leave")(later)
sync_tool = PydanticAgent(FunctionModel(_calls))
sync_tool.tool_plain(name="leave")(escape)
model = PydanticAgent(FunctionModel(_model))
instructed = PydanticAgent(FunctionModel(_calls))


@instructed.instructions
def _instructions(ctx: Any) -> str:
    return escape(str(ctx.prompt))


class Host:
    """It tries to leave when it is first told something."""

    delivery = Delivery("C")

    def __init__(self) -> None:
        self.calls = 0
        self.told = asyncio.Event()

    async def has(self, thread: str, notice: str) -> bool:
        return False

    async def deliver(self, thread: str, notices: Any) -> None:
        self.calls += 1
        if self.calls == 1:
            sys.exit(3)
        self.told.set()


FUNCTIONS: dict[str, Any] = {
    "sync_function": sync_function,
    "async_function": async_function,
    "function_with_tasks": function_with_tasks,
}
AGENTS: dict[str, Any] = {
    "looping": looping,
    "generating": generating,
    "threading": threading,
    "grouping": grouping,
    "async_tool": async_tool,
    "sync_tool": sync_tool,
    "model": model,
    "instructed": instructed,
}


def works() -> dict[str, Any]:
    found = {f"{name} {way}": Call(one.fn, way) for name, one in FUNCTIONS.items() for way in WAYS}
    return found | {f"{name} {way}": Agent(name, way) for name in AGENTS for way in WAYS}


def said_of(task: Task) -> list[str]:
    assert isinstance(task.outcome, Failed)
    return [str(task.status), task.outcome.message]


async def embedded(ledger: str) -> dict[str, list[str]]:
    async with Meantime.open(ledger, agents=AGENTS) as mt:
        thread = mt.thread("a")
        await mt.set_limits(per_thread=-1)
        beside = await thread.start(Shell("sleep 0.2; echo fine"))
        handles = {name: await thread.start(work) for name, work in works().items()}
        tasks = {name: await handle.wait() for name, handle in handles.items()}
        assert await beside.result() == "fine\n"
        mt.attach("told", host := Host())
        await mt.thread("told").start(Shell("true"))
        async with asyncio.timeout(LIMIT):
            await host.told.wait()
        return {name: said_of(task) for name, task in tasks.items()}


def blocking(ledger: str) -> dict[str, list[str]]:
    with Blocking.open(ledger, agents=AGENTS) as mt:
        thread = mt.thread("a")
        mt.set_limits(per_thread=-1)
        beside = thread.start(Shell("sleep 0.2; echo fine"))
        handles = {name: thread.start(work) for name, work in works().items()}
        tasks = {name: handle.wait() for name, handle in handles.items()}
        assert beside.result() == "fine\n"
        return {name: said_of(task) for name, task in tasks.items()}


if __name__ == "__main__":
    found = blocking(sys.argv[1]) if "blocking" in sys.argv else asyncio.run(embedded(sys.argv[1]))
    sys.stdout.write(json.dumps(found))
