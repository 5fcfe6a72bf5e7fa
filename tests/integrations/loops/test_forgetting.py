"""What is kept of a session goes with the last task that works in it, and not before."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.test import TestModel

from meantime import Agent, Handle, Meantime, Refused, Settings
from meantime.integrations.loops import Conversation
from meantime.kernel.fork_context import COPIED
from meantime.kernel.limits import Retention
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio
DAY = 86_400.0
STRAY = "py-" + "0" * 20
SLOW = Settings(retention=Retention(history_seconds=DAY), reconcile_every=1800.0)


async def echo(talk: Conversation) -> str:
    return f"{len(talk.messages)}: {talk.messages[-1].text}"


@pytest.fixture(params=["loop", "pydantic"])
def agent(request: pytest.FixtureRequest) -> Any:
    return echo if request.param == "loop" else PydanticAgent(TestModel(custom_output_text="done"))


def kept(folder: Path) -> set[str]:
    return {path.stem for path in (folder / "work.db.agents" / "PythonHost").glob("py-*")}


def age(folder: Path, seconds: float) -> None:
    """Files have the time of the machine; a test cannot wait for it."""
    for path in (folder / "work.db.agents" / "PythonHost").glob("py-*"):
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


async def worked(mt: Meantime, **options: Any) -> Handle:
    handle = await mt.thread("t").start(Agent("one", "hello"), **options)
    await handle.result()
    return handle


async def session_of(handle: Handle) -> str:
    session = (await handle.get()).session
    assert session is not None
    return session


@pytest.mark.behaviour("I14")
async def test_a_purged_task_leaves_nothing_of_its_session(tmp_path: Path, agent: Any):
    async with Meantime.open(tmp_path / "work.db", agents={"one": agent}) as mt:
        first, second = await worked(mt), await worked(mt)
        both = {await session_of(first), await session_of(second)}
        assert kept(tmp_path) == both
        await mt.purge(first.id)
        assert kept(tmp_path) == {await session_of(second)}


@pytest.mark.behaviour("I14")
async def test_a_session_stays_as_long_as_a_task_works_in_it(tmp_path: Path, agent: Any):
    async with Meantime.open(tmp_path / "work.db", agents={"one": agent}) as mt:
        first = await worked(mt)
        session = await session_of(first)
        second = await worked(mt, session=session)
        await mt.purge(first.id)
        assert kept(tmp_path) == {session}
        again = await mt.thread("t").resume(second, "go on")
        await again.result()
        await mt.purge(second.id)
        assert kept(tmp_path) == set()


@pytest.mark.behaviour("I14")
async def test_a_fork_that_waits_for_its_slot_still_finds_what_it_begins_with(tmp_path: Path):
    gate = asyncio.Event()

    async def turn(talk: Conversation) -> str:
        if talk.messages[-1].text == "wait":
            await gate.wait()
        return f"{len(talk.messages)}: {talk.messages[-1].text}"

    async with Meantime.open(tmp_path / "work.db", agents={"one": turn}) as mt:
        thread = mt.thread("t")
        source = await worked(mt)
        await mt.set_limits(total=1)
        await thread.start(Agent("one", "wait"))
        fork = await thread.start(Agent("one", "fork"), fork_of=source, on_limit="queue")
        session = await session_of(source)
        await mt.purge(source.id)
        assert session in kept(tmp_path)
        gate.set()
        assert await fork.result() == f"3: {COPIED}\n\nfork"


@pytest.mark.breadth
@pytest.mark.behaviour("I14")
async def test_what_retention_forgets_takes_its_session_along(tmp_path: Path, agent: Any):
    clock = FakeClock(quiet=0.02)
    async with Meantime.open(tmp_path / "work.db", agents={"one": agent}, clock=clock, settings=SLOW) as mt:
        old = await worked(mt, notify=False)
        session = await session_of(old)
        age(tmp_path, DAY)
        await clock.advance(DAY)
        young = await worked(mt, notify=False)
        assert kept(tmp_path) == {session, await session_of(young)}
        await clock.advance(3 * 3600.0)
        await clock.until(lambda: kept(tmp_path) != {session})
        await clock.until(lambda: session not in kept(tmp_path))
        assert kept(tmp_path) == {await session_of(young)}
        with pytest.raises(KeyError):
            await mt.get(old.id)


@pytest.mark.parametrize("ending", ["lines", "messages"])
async def test_a_session_without_a_task_is_swept_when_it_is_old(tmp_path: Path, ending: str):
    """A crash came between the session and its record, or between the end of the one and of the other."""
    clock = FakeClock(quiet=0.02)
    folder = tmp_path / "work.db.agents" / "PythonHost"
    async with Meantime.open(tmp_path / "work.db", agents={"one": echo}, clock=clock, settings=SLOW) as mt:
        await worked(mt)
        age(tmp_path, DAY)
        (folder / f"{STRAY}.{ending}").touch()
        young = kept(tmp_path)
        await clock.advance(3601.0)
        assert kept(tmp_path) == young, "it may be just about to be recorded"
        age(tmp_path, DAY)
        await clock.advance(3601.0)
        await clock.until(lambda: STRAY not in kept(tmp_path))
        assert len(kept(tmp_path)) == 1, "that of the task is still there"


async def test_a_session_that_is_gone_is_said_to_be_gone(tmp_path: Path, agent: Any):
    async with Meantime.open(tmp_path / "work.db", agents={"one": agent}) as mt:
        first = await worked(mt)
        session = await session_of(first)
        await mt.purge(first.id)
        handle = await mt.thread("t").start(Agent("one", "hello"), session=session)
        with pytest.raises(Exception, match="The session of this task is gone"):
            await handle.result()
        with pytest.raises(Refused):
            await mt.thread("t").resume(handle, "go on")


@pytest.mark.behaviour("I14")
async def test_a_call_that_is_silent_for_long_keeps_what_it_works_with(tmp_path: Path):
    """It is no task yet, and may become one."""
    gate, clock = asyncio.Event(), FakeClock(quiet=0.02)

    async def turn(talk: Conversation) -> str:
        await gate.wait()
        return f"{len(talk.messages)}: {talk.messages[-1].text}"

    async with Meantime.open(tmp_path / "work.db", agents={"one": turn}, clock=clock, settings=SLOW) as mt:
        call = asyncio.create_task(mt.thread("t").call(Agent("one", "hello"), threshold=None, timeout=DAY))
        await clock.until(lambda: kept(tmp_path))
        (mine,) = kept(tmp_path)
        (tmp_path / "work.db.agents" / "PythonHost" / f"{STRAY}.lines").touch()
        age(tmp_path, DAY)
        (journal,) = (tmp_path / "work.db.agents").glob("@*")
        os.utime(journal, (0.0, 0.0))
        await clock.advance(2 * 3601.0)
        await clock.until(lambda: STRAY not in kept(tmp_path))
        assert kept(tmp_path) == {mine}
        assert journal.exists()
        gate.set()
        assert (await call).result == "1: hello"


@pytest.mark.behaviour("I14")
async def test_tasks_of_an_agent_that_is_not_there_any_more_can_be_purged(tmp_path: Path, agent: Any):
    async with Meantime.open(tmp_path / "work.db", agents={"one": agent}) as mt:
        handle = await worked(mt)
    async with Meantime.open(tmp_path / "work.db") as mt:
        assert await mt.purge(handle.id) == 1
        assert await mt.list() == []
