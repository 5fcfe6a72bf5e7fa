"""A dialect's tools with a runtime behind them."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from meantime.engines.local import LocalEngine
from meantime.kernel.model import Failed, Task
from meantime.kernel.work import Agent
from meantime.ports.dialect import Dialect, Said
from meantime.ports.tasks import Options, Tasks
from meantime.runners.function import FunctionRunner
from meantime.runtime.runtime import Runtime
from meantime.runtime.settings import Settings
from meantime.stores.memory.store import MemoryStore
from meantime.testing.fake_clock import FakeClock
from meantime.testing.fake_session_runner import FakeSessionRunner, Reply
from meantime.toolset.toolset import Toolset
from meantime.toolset.work_catalog import GivenWorks

from .sample_tasks import HOSTILE, examples
from .text_checks import assert_clean, assert_clean_data

THREAD = "conv-1"


@asynccontextmanager
async def opened() -> AsyncGenerator[Tasks]:
    """A ledger in memory, with agents that say hostile things."""
    agents = FakeSessionRunner(
        {
            "explore": Reply(HOSTILE, tools=(HOSTILE,), emits={HOSTILE: HOSTILE}),
            "review": Reply(error=Failed(HOSTILE)),
        }
    )
    engine = LocalEngine([FunctionRunner(), agents])
    runtime = Runtime(MemoryStore(), engine, FakeClock(), Settings())
    await runtime.open()
    try:
        yield runtime
    finally:
        await runtime.close()


def toolset_of(tasks: Tasks, dialect: Dialect) -> Toolset:
    works = GivenWorks(tasks, ("explore", "review"), {"index": time.time})
    return Toolset(tasks, works, THREAD, dialect)


async def ended(tasks: Tasks, agent: str) -> Task:
    order = Agent(agent, HOSTILE).order()
    task = await tasks.start(THREAD, order, Options(description=HOSTILE))
    return (await tasks.wait([task.id], THREAD))[0]


def assert_refused(said: Said, what: str) -> None:
    assert said.code, f"{what} is answered as if it were right: {said.text[:200]!r}"
    assert said.code != "internal", f"{what} is a fault of the dialect: the log says which"


async def bad_calls_are_answered(dialect: Dialect) -> None:
    async with opened() as tasks:
        toolset = toolset_of(tasks, dialect)
        assert_refused(await toolset.call("no_such_tool", {}), "a tool that there is not")
        for tool in await toolset.tools():
            bad = await toolset.call(tool.name, {"no_such_argument": 1})
            assert_refused(bad, f"{tool.name} with an argument that there is not")
            assert_refused(await toolset.call(tool.name, ["not", "an", "object"]), f"{tool.name} with a list")
            for name in tool.schema.get("required", ()):
                for given in next(examples(tool.schema, "t_nothing")), {}:
                    wrong: dict[str, object] = {**given, name: [[0]]}
                    assert_refused(await toolset.call(tool.name, wrong), f"{tool.name} with a wrong {name}")


async def unknown_tasks_are_answered(dialect: Dialect) -> None:
    """Every tool with all that its schema allows, and ids that nobody has."""
    async with opened() as tasks:
        toolset = toolset_of(tasks, dialect)
        for text in ("t_nothing", "../../etc/passwd", HOSTILE, "x" * 5_000):
            for tool in await toolset.tools():
                for given in examples(tool.schema, text):
                    said = await toolset.call(tool.name, given)
                    assert said.text, f"{tool.name} says nothing to {given}"
                    assert said.code != "internal", f"{tool.name} fails with {given}: the log says why"
                    assert_clean(said.text, f"{tool.name} with {list(given)}")


async def what_tasks_said_is_cleaned(dialect: Dialect) -> None:
    async with opened() as tasks:
        toolset = toolset_of(tasks, dialect)
        for agent in ("explore", "review"):
            task = await ended(tasks, agent)
            for tool in await toolset.tools():
                if tool.starts or tool.cancels:
                    continue
                for given in examples(tool.schema, task.id):
                    said = await toolset.call(tool.name, given)
                    assert_clean(said.text, tool.name)
                    assert_clean_data(said.data, tool.name)


async def reads_settle_only_where_the_policy_says_so(dialect: Dialect) -> None:
    async with opened() as tasks:
        toolset = toolset_of(tasks, dialect)
        task = await ended(tasks, "explore")
        for tool in await toolset.tools():
            for given in examples(tool.schema, task.id) if tool.reads else ():
                said = await toolset.call(tool.name, given)
                assert dialect.policy.reads_settle or not said.reads, f"{tool.name} settles a notice"


async def commands_are_answered(dialect: Dialect) -> None:
    async with opened() as tasks:
        toolset = toolset_of(tasks, dialect)
        assert_refused(await toolset.command("/no such command"), "a command that there is not")
        await ended(tasks, "explore")
        for command in toolset.commands():
            for rest in ("", "t_nothing", HOSTILE):
                said = await toolset.command(f"/{command.name} {rest}")
                assert said.text, f"/{command.name} says nothing"
                assert said.code != "internal", f"/{command.name} fails with {rest!r}: the log says why"
                assert not said.reads, "what a person reads settles nothing"
                assert_clean(said.text, f"/{command.name}")


CHECKS = (
    bad_calls_are_answered,
    unknown_tasks_are_answered,
    what_tasks_said_is_cleaned,
    reads_settle_only_where_the_policy_says_so,
    commands_are_answered,
)
