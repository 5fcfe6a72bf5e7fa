"""A place for scripted agents to work in: real SQLite, and time that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.waiting import until_async

from meantime import Agent, Meantime, Task
from meantime.kernel.lines import Kind, Line
from meantime.kernel.questions import PERMISSION, Question
from meantime.ports.session import AgentSettings, SessionAbilities
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing import FakeClock
from meantime.testing.scripted_host import ScriptedHost, Turn

NAME = "helper"
STEER = SessionAbilities(steer=True)


def call(tool: str, **arguments: Any) -> Line:
    return Line(role="assistant", kind=Kind.CALL, tool=tool, arguments=arguments)


def result(tool: str, text: str, *, failed: bool = False) -> Line:
    return Line(role="tool", kind=Kind.RESULT, tool=tool, text=text, failed=failed)


def text(words: str, role: str = "assistant") -> Line:
    return Line(role=role, text=words)


def permission(id: str = "p1", tool: str = "bash", words: str = "May I?") -> Question:
    return Question(id=id, text=words, kind="permission", choices=PERMISSION, subject=tool)


async def never(*_: object) -> str:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


def echo_host() -> ScriptedHost:
    async def turn(prompt, hearer):
        return f"heard: {prompt.text}"

    return ScriptedHost(turn)


@asynccontextmanager
async def working(
    folder: Path,
    host: ScriptedHost | Turn,
    *,
    clock: FakeClock | None = None,
    more: dict[str, HostedAgent] | None = None,
    open: dict[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Meantime]:
    """A ledger with the agent `helper`, and those of `more`."""
    if not isinstance(host, ScriptedHost):
        host = ScriptedHost(host)
    agents = {NAME: HostedAgent(AgentSettings(runner="python", **settings), host), **(more or {})}
    given: dict[str, Any] = dict(open or {})
    if clock is not None:
        given["clock"] = clock
    async with Meantime.open(folder / "work.db", agents=agents, **given) as mt:
        yield mt


async def start(mt: Meantime, prompt: str = "do it", **options: Any):
    return await mt.thread("conv-1").start(Agent(NAME, prompt), **options)


async def waits(mt: Meantime, id: str) -> Task:
    """The task, once it waits for an answer."""

    async def asked() -> Task | None:
        task = await mt.get(id)
        return task if task.question is not None else None

    return await until_async(asked, f"{id} waits for an answer", lambda: mt.get(id))


async def events(mt: Meantime, task: str) -> list[str]:
    return [event.kind for event in await mt._runtime.events(0, 1_000) if event.task_id == task]
