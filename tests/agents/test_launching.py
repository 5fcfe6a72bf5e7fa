"""An agent is handed off like any other work: its task is durable first, and knows where it came from."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime import Agent, Call, InvalidInput, Meantime, Refused
from meantime.kernel.limits import Limits
from meantime.ports.session import AgentSettings
from meantime.runners.agent.agent_run import HostedAgent
from meantime.runtime.settings import Settings
from meantime.testing.scripted_host import ScriptedHost

from .stage import NAME, echo_host, never, start, working

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F1")
async def test_an_agent_starts_with_description_prompt_and_name(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        handle = await start(mt, "look at it", description="look around", batch="b1", message_id="m-7")
        assert (handle.task.status, handle.task.agent) == ("running", NAME)
        assert (handle.task.description, handle.task.batch) == ("look around", "b1")
        assert await handle.result() == "heard: look at it"
        task = await handle.get()
        assert (task.thread, task.message_id, task.session) == ("conv-1", "m-7", f"s-{task.id}")


@pytest.mark.behaviour("F1")
async def test_the_record_is_on_disk_before_the_agent_is_told_anything(tmp_path: Path):
    seen: list[tuple[str, str]] = []

    async def turn(prompt, hearer):
        with closing(sqlite3.connect(tmp_path / "work.db")) as db:
            seen.extend(db.execute("SELECT id, status FROM tasks").fetchall())
        return "done"

    async with working(tmp_path, turn) as mt:
        handle = await start(mt)
        await handle.wait()
        assert seen == [(handle.id, "running")]


@pytest.mark.behaviour("F1")
async def test_an_unknown_agent_is_a_clear_error_and_nothing_is_recorded(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        with pytest.raises(InvalidInput, match="no agent 'helpr'") as caught:
            await mt.thread("conv-1").start(Agent("helpr", "do it"))
        assert (caught.value.code, NAME in caught.value.hint) == ("unknown_agent", True)
        assert await mt.list() == []
        assert await mt._runtime.events(0, 10) == []


@pytest.mark.behaviour("F1")
async def test_an_agent_that_can_never_run_is_refused_before_anything_is_recorded(tmp_path: Path):
    class Missing(ScriptedHost):
        def check(self, name, settings):
            raise InvalidInput("There is no program goose here.", hint="Install it.")

    async with working(tmp_path, Missing(never)) as mt:
        with pytest.raises(InvalidInput, match="no program goose"):
            await start(mt)
        assert await mt.list() == []


@pytest.mark.behaviour("F1")
async def test_a_prompt_over_the_limit_is_refused(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        with pytest.raises(InvalidInput, match="at most 1000000 are kept") as caught:
            await start(mt, "x" * 1_000_001)
        assert caught.value.code == "too_big"


@pytest.mark.behaviour("F19")
async def test_the_whitelist_of_tools_reaches_the_host_as_it_is(tmp_path: Path):
    hosts = {name: echo_host() for name in ("all", "none", "some")}
    tools = {"all": None, "none": (), "some": ("read",)}
    more = {
        name: HostedAgent(AgentSettings(runner="python", tools=tools[name]), host)
        for name, host in hosts.items()
    }
    async with working(tmp_path, echo_host(), more=more) as mt:
        for name, host in hosts.items():
            await (await mt.thread("conv-1").start(Agent(name, "go"))).wait()
            assert host.briefs[0].settings.tools == tools[name]


@pytest.mark.behaviour("F19")
@pytest.mark.parametrize(
    ("own", "given", "has"),
    [
        (None, ["read"], ("read",)),
        (("read", "grep"), ["grep", "bash"], ("grep",)),
        (None, [], ()),
    ],
)
async def test_a_task_may_have_fewer_tools_than_its_agent(
    tmp_path: Path, own: tuple[str, ...] | None, given: list[str], has: tuple[str, ...]
):
    host = echo_host()
    more = {"some": HostedAgent(AgentSettings(runner="python", tools=own), host)}
    async with working(tmp_path, echo_host(), more=more) as mt:
        thread = mt.thread("conv-1")
        await (await thread.start(Agent("some", "go", tools=given))).wait()
        assert host.briefs[0].settings.tools == has
        with pytest.raises(InvalidInput, match="list of names"):
            await thread.start(Agent("some", "go", tools="read"))


@pytest.mark.behaviour("F17")
async def test_what_an_agent_starts_is_refused_unless_its_settings_allow_it(tmp_path: Path):
    refused: list[Refused] = []
    box: list[Meantime] = []

    async def turn(prompt, hearer):
        try:
            await box[0].thread("conv-1").start(Call(int, "1"))
        except Refused as problem:
            refused.append(problem)
        return "done"

    async with working(tmp_path, turn) as mt:
        box.append(mt)
        handle = await start(mt)
        await handle.wait()
        assert [problem.code for problem in refused] == ["no_children"]
        assert [task.id for task in await mt.list()] == [handle.id]
        assert (await handle.get()).children == 0


@pytest.mark.behaviour("F17")
async def test_an_allowed_child_is_one_deeper_and_can_start_nothing_itself(tmp_path: Path):
    box: list[Meantime] = []
    trouble: list[str] = []

    async def turn(prompt, hearer):
        if prompt.text == "child":
            try:
                await box[0].thread("conv-1").start(Agent(NAME, "grandchild"))
            except Refused as problem:
                trouble.append(problem.code)
            return "child done"
        child = await box[0].thread("conv-1").start(Agent(NAME, "child"))
        return await child.result()

    async with working(tmp_path, turn, depth=1) as mt:
        box.append(mt)
        handle = await start(mt, "parent")
        assert await handle.result() == "child done"
        assert trouble == ["no_children"]
        child = next(task for task in await mt.list() if task.id != handle.id)
        assert (child.parent, child.depth, child.children) == (handle.id, 1, 0)


@pytest.mark.behaviour("F9")
async def test_parent_and_depth_are_recorded(tmp_path: Path):
    box: list[Meantime] = []

    async def turn(prompt, hearer):
        await (await box[0].thread("inner").start(Call(int, "1"), id="inner-1")).wait()
        return "done"

    async with working(tmp_path, turn, depth=2) as mt:
        box.append(mt)
        handle = await start(mt)
        await handle.wait()
        inner = await mt.get("inner-1")
        assert (inner.parent, inner.depth, inner.thread) == (handle.id, 1, "inner")


@pytest.mark.behaviour("L4")
async def test_a_queued_agent_shows_its_position(tmp_path: Path):
    going = asyncio.Event()

    async def turn(prompt, hearer):
        await going.wait()
        return "done"

    settings = Settings(limits=Limits(per_kind={"agent": 1}))
    async with working(tmp_path, turn, open={"settings": settings}) as mt:
        first, second, third = [await start(mt) for _ in range(3)]
        assert [(await handle.get()).status for handle in (first, second, third)] == [
            "running", "queued", "queued",
        ]  # fmt: skip
        assert [await mt.thread("conv-1").position(handle) for handle in (second, third)] == [1, 2]
        going.set()
        assert [(await handle.wait()).status for handle in (first, second, third)] == ["completed"] * 3


@pytest.mark.behaviour("L11")
async def test_an_interrupt_keeps_cancels_own_or_cancels_all(tmp_path: Path):
    box: list[Meantime] = []

    async def turn(prompt, hearer):
        if prompt.text == "parent":
            await box[0].thread("inner").start(Agent(NAME, "child"), id="child")
        return await never()

    async with working(tmp_path, turn, depth=1) as mt:
        box.append(mt)
        thread = mt.thread("conv-1")
        handle = await start(mt, "parent")

        async def has_child() -> bool:
            return len(await mt.list("running")) == 2

        await until_async(has_child, "the child runs", mt.list)
        assert await thread.interrupt("keep") == ()
        assert len(await thread.interrupt("own")) == 1
        assert (await handle.wait()).status == "cancelled"
        assert (await mt.get("child")).status == "running"
        handle = await start(mt, "again")
        assert len(await thread.interrupt("all")) == 1
        await mt.thread("inner").cancel("child", wait=True)
        assert (await mt.get("child")).status == "cancelled"


@pytest.mark.behaviour("N1", "N5")
async def test_the_owning_thread_is_woken_and_told(tmp_path: Path):
    async with working(tmp_path, echo_host()) as mt:
        thread = mt.thread("conv-1")
        handle = await start(mt, "look", description="look around")
        async for _ in thread.wakeups():
            async with thread.turn() as turn:
                (notice,) = turn.notices
                assert (notice.id, "heard: look" in notice.message().text) == (f"{handle.id}.1", True)
                await turn.ack()
            break
        async with mt.thread("another").turn() as turn:
            assert turn.notices == []


async def test_an_agents_own_timeout_holds_where_the_start_names_none(tmp_path: Path):
    async with working(tmp_path, echo_host(), timeout=120.0) as mt:
        assert (await start(mt)).task.run.timeout == 120.0
        assert (await start(mt, timeout=5)).task.run.timeout == 5
        handle = await start(mt)
        await handle.wait()
        assert (await mt.thread("conv-1").resume(handle, "more")).task.run.timeout == 120.0


@pytest.mark.behaviour("F9")
async def test_a_program_that_works_for_a_task_has_a_thread_of_its_own(tmp_path: Path):
    """What it hands off through Meantime is told to it, and not to the conversation that started it."""
    host = echo_host()
    async with working(tmp_path, host) as mt:
        handle = await start(mt)
        await handle.wait()
    assert host.briefs[0].env == {"MEANTIME_TASK": handle.id, "MEANTIME_THREAD": handle.id}
