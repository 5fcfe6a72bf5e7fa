"""Troubles of a provider are waited out inside the turn (L26, 004-E13); agents share what it can take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.waiting import LIMIT, until_async

from meantime import Agent, Limits, Meantime, Settings, TaskFailed
from meantime.integrations.loops import PythonAgent
from meantime.testing import FakeClock

from .scripted import Script
from .server import Server

pytestmark = pytest.mark.anyio


def limited(after: str | None = None, status: int = 429) -> ModelHTTPError:
    return ModelHTTPError(status, "m", headers={"Retry-After": after} if after else None)


@pytest.mark.behaviour("L26")
@pytest.mark.scenario("004", "E13")
async def test_a_429_is_tried_again_after_the_time_it_names_and_nobody_sees_it(clock: FakeClock):
    script = Script(limited("17"), limited("4", 529), "done")
    async with Meantime.open(":memory:", agents={"a": PydanticAgent(script.model)}, clock=clock) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("a", "go"))
        await clock.advance_to_alarm(17.0)
        await clock.advance_to_alarm(4.0)
        assert await handle.result() == "done"
        assert [line.text for line in await thread.lines(handle)] == ["go", "done"]
        assert (await handle.get()).progress.turns == 1
        assert [asked.prompts for asked in script.asked] == [["go"]] * 3


@pytest.mark.behaviour("L26")
@pytest.mark.scenario("004", "E13")
@pytest.mark.parametrize(
    "problem",
    [
        ModelHTTPError(500, "m"),
        ModelHTTPError(503, "m"),
        ModelHTTPError(409, "m"),
        ModelHTTPError(408, "m"),
        ConnectionResetError("reset"),
    ],
    ids=["500", "503", "409", "408", "reset"],
)
async def test_a_server_that_fails_is_tried_again(clock: FakeClock, problem: Exception):
    script = Script(problem, problem, "done")
    async with Meantime.open(":memory:", agents={"a": PydanticAgent(script.model)}, clock=clock) as mt:
        handle = await mt.thread("t").start(Agent("a", "go"))
        await clock.advance_to_alarm(1.0)
        await clock.advance_to_alarm(2.0)
        assert await handle.result() == "done"


async def test_a_model_that_says_nothing_for_too_long_is_asked_again(clock: FakeClock):
    script = Script(asyncio.Event(), "done")
    employed = PythonAgent(PydanticAgent(script.model), options={"silence": 45})
    async with Meantime.open(":memory:", agents={"a": employed}, clock=clock) as mt:
        handle = await mt.thread("t").start(Agent("a", "go"))
        await script.waits.wait()
        await clock.advance_to_alarm(45.0)
        await clock.advance_to_alarm(1.0)
        assert await handle.result() == "done"
        assert len(script.asked) == 2


async def test_a_model_that_says_a_little_all_the_time_is_left_alone(clock: FakeClock):
    steps = [asyncio.Event() for _ in range(3)]

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for place, step in enumerate(steps):
            await step.wait()
            yield f"{place} "

    employed = PythonAgent(PydanticAgent(FunctionModel(stream_function=stream)), options={"silence": 45})
    async with Meantime.open(":memory:", agents={"a": employed}, clock=clock) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("a", "go"))
        await clock.until(lambda: 45.0 in clock.due_in)
        for step in steps:
            await clock.advance(40.0)
            step.set()
        assert await handle.result() == "0 1 2 "


async def test_what_was_said_before_the_connection_broke_is_not_said_twice(clock: FakeClock):
    tries: list[int] = []

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        tries.append(1)
        yield "one "
        if len(tries) == 1:
            raise ConnectionResetError("reset")
        yield "two"

    agent = PydanticAgent(FunctionModel(stream_function=stream))
    async with Meantime.open(":memory:", agents={"a": agent}, clock=clock) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("a", "go"))
        await clock.advance_to_alarm(1.0)
        assert await handle.result() == "one two"
        assert (await thread.log(handle).read()).text == "> go\none two\n"


async def test_a_provider_that_never_comes_back_ends_the_task(clock: FakeClock):
    script = Script(*[ModelHTTPError(500, "m")] * 40)
    async with Meantime.open(":memory:", agents={"a": PydanticAgent(script.model)}, clock=clock) as mt:
        handle = await mt.thread("t").start(Agent("a", "go"))

        async def is_over() -> bool:
            await clock.advance(60.0)
            return (await handle.get()).ended

        await until_async(is_over, "the task has ended")
        with pytest.raises(TaskFailed, match="500"):
            await handle.result()
        assert len(script.asked) == 31


async def test_a_stop_while_it_waits_for_the_provider_is_prompt(clock: FakeClock):
    script = Script(ModelHTTPError(500, "m"), "never")
    async with Meantime.open(":memory:", agents={"a": PydanticAgent(script.model)}, clock=clock) as mt:
        thread = mt.thread("t")
        handle = await thread.start(Agent("a", "go"))
        await clock.until(lambda: script.asked)
        await thread.cancel(handle, wait=True)
        assert (await handle.get()).status == "cancelled"


async def test_the_troubles_of_all_models_of_a_fallback_are_troubles(clock: FakeClock):
    first, second = Script(ModelHTTPError(500, "a")), Script(limited("3"), "done")
    agent = PydanticAgent(FallbackModel(first.model, second.model))
    first.steps.append(ModelHTTPError(500, "a"))
    async with Meantime.open(":memory:", agents={"a": agent}, clock=clock) as mt:
        handle = await mt.thread("t").start(Agent("a", "go"))
        await clock.advance_to_alarm(3.0)
        assert await handle.result() == "done"


# -- over a real connection, with the client library that people use


def over_http(server: Server) -> PydanticAgent[None, str]:
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="none")
    provider.client.max_retries = 0  # the library would try by itself, and the gate would learn nothing
    return PydanticAgent(OpenAIChatModel("scripted", provider=provider))


@pytest.mark.breadth
@pytest.mark.behaviour("L26")
@pytest.mark.scenario("004", "E13")
@pytest.mark.parametrize("trouble", ["429", "500", "reset", "cut"])
async def test_trouble_over_http_is_waited_out(trouble: str):
    with Server([trouble, "hello from afar"]) as server:
        async with Meantime.open(":memory:", agents={"a": over_http(server)}) as mt:
            thread = mt.thread("t")
            handle = await thread.start(Agent("a", "go"))
            async with asyncio.timeout(LIMIT):
                await thread.wait(handle)
            assert await handle.result() == "hello from afar"
            assert server.asked == 2
            assert (await handle.get()).progress.tokens == 12


@pytest.mark.breadth
async def test_a_hanging_server_is_asked_again(clock: FakeClock):
    with Server(["hang", "hello"]) as server:
        employed = PythonAgent(over_http(server), options={"silence": 45})
        async with Meantime.open(":memory:", agents={"a": employed}, clock=clock) as mt:
            handle = await mt.thread("t").start(Agent("a", "go"))
            await until_async(lambda: server.steps == ["hello"], "the server hangs")
            await clock.advance_to_alarm(45.0)
            await clock.advance_to_alarm(1.0)
            assert await handle.result() == "hello"


@pytest.mark.breadth
async def test_ten_agents_on_a_model_that_takes_two_at_once_all_finish():
    with Server([], most=2) as server:
        settings = Settings(limits=Limits(per_thread=-1, total=-1))
        employed = PythonAgent(over_http(server), model="")
        async with Meantime.open(":memory:", agents={"a": employed}, settings=settings) as mt:
            thread = mt.thread("t")
            handles = [await thread.start(Agent("a", f"number {n}")) for n in range(10)]
            async with asyncio.timeout(LIMIT):
                await thread.wait(*handles)
            for n, handle in enumerate(handles):
                assert await handle.result() == f"ECHO number {n}"
        assert server.refused > 0, "it was too much at first"
        assert server.asked == 10 + server.refused
