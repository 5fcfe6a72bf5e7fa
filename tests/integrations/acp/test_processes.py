"""How an agent's process starts, is stopped, and what becomes of all that it has started."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_async

from meantime import Agent, InvalidInput, Meantime
from meantime.kernel.budgets import Budget
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Completed, Failed, Lost
from meantime.testing import FakeClock

from .conftest import Peer, below_us, ended, runs, steps

pytestmark = pytest.mark.anyio


async def test_a_cancel_is_obeyed_and_the_process_goes_on(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps({"say": "so far"}, {"wait": "never"}))
        await peer.until("waits")
        await thread.cancel(handle, by="user", wait=True)
        task = await handle.get()
        assert task.status is Status.CANCELLED
        await thread.resume(handle, "again")
        assert isinstance((await ended(thread, handle)).outcome, Completed)
    assert len(peer.lines("starts")) == 1


async def test_an_agent_that_is_deaf_is_ended_with_all_its_children_and_loaded_again(peer: Peer):
    async with peer.employed("deaf", options={"grace": 0.1}) as thread:
        handle = await thread.start(steps({"child": "children"}, {"wait": "never"}))
        await peer.until("waits")
        await thread.cancel(handle, by="user", wait=True)
        assert (await handle.get()).status is Status.CANCELLED
        (child,) = peer.lines("children")
        await until_async(lambda: not runs(int(child)), "the child is gone")
        await thread.resume(handle, "again")
        task = await ended(thread, handle)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "echo again"
    assert len(peer.lines("starts")) == 2


async def test_an_agent_that_leaves_its_commands_running_is_ended_also_when_it_obeys(peer: Peer):
    """As codex does."""
    async with peer.employed(profile="codex") as thread:
        handle = await thread.start(steps({"child": "children"}, {"wait": "never"}))
        await peer.until("waits")
        await thread.cancel(handle, by="user", wait=True)
        (child,) = peer.lines("children")
        await until_async(lambda: not runs(int(child)), "the child is gone")
        await thread.resume(handle, "again")
        assert isinstance((await ended(thread, handle)).outcome, Completed)


async def test_closing_ends_the_agent_and_its_children(peer: Peer):
    others = below_us()  # of tests before this one
    async with peer.employed() as thread:
        await ended(thread, await thread.start(steps({"child": "children"}, {"say": "done"})))
        pids = [int(pid) for pid in (*peer.lines("children"), *peer.lines("starts"))]
        assert all(runs(pid) for pid in pids)
    await until_async(lambda: not any(runs(pid) for pid in pids), "the agent and its child are gone")
    assert set(below_us()) <= set(others)


async def test_an_idle_process_is_stopped_and_started_again_when_it_is_needed(peer: Peer):
    async with peer.employed(options={"idle": 0.1}) as thread:
        handle = await thread.start(Agent("one", "hello"))
        await ended(thread, handle)
        starts = peer.lines("starts")  # a slow machine may be idle before the first turn, too
        await until_async(lambda: not runs(int(starts[-1])), "the idle process is gone")
        await thread.resume(handle, "again")
        task = await ended(thread, handle)
    assert isinstance(task.outcome, Completed)
    assert len(peer.lines("starts")) > len(starts)


async def test_each_task_has_a_process_of_its_own_that_knows_whose_it_is(peer: Peer):
    async with peer.employed(env={"COLOUR": "red"}) as thread:
        both = [await thread.start(steps({"env": "MEANTIME_TASK"})) for _ in range(2)]
        tasks = [await ended(thread, handle) for handle in both]
        colour = await ended(thread, await thread.start(steps({"env": "COLOUR"})))
    assert [task.outcome.result for task in tasks] == [handle.id for handle in both]  # type: ignore[union-attr]
    assert colour.outcome.result == "red"  # type: ignore[union-attr]
    assert len(peer.lines("starts")) == 3


async def test_nothing_of_our_environment_reaches_the_agent_unless_it_is_named(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.setenv("WANTED", "yes")
    async with peer.employed(inherit=("WANTED",)) as thread:
        secret = await ended(thread, await thread.start(steps({"env": "SECRET"})))
        wanted = await ended(thread, await thread.start(steps({"env": "WANTED"})))
    assert secret.outcome.result == "unset"  # type: ignore[union-attr]
    assert wanted.outcome.result == "yes"  # type: ignore[union-attr]


async def test_a_shared_process_takes_turns_of_several_sessions_at_once(peer: Peer):
    async with peer.employed(options={"shared": True}) as thread:
        both = [await thread.start(steps({"wait": f"go-{n}"}, {"say": f"{n}"})) for n in range(2)]
        await peer.until("waits", 2)
        peer.touch("go-1")
        second = await ended(thread, both[1])
        peer.touch("go-0")
        first = await ended(thread, both[0])
    assert (first.outcome.result, second.outcome.result) == ("0", "1")  # type: ignore[union-attr]
    assert len(peer.lines("starts")) == 1


async def test_the_death_of_a_shared_process_is_the_loss_of_all_its_turns(peer: Peer):
    async with peer.employed(options={"shared": True}) as thread:
        both = [await thread.start(steps({"wait": "never"})) for _ in range(2)]
        await peer.until("waits", 2)
        os.kill(int(peer.lines("starts")[0]), signal.SIGKILL)
        tasks = [await ended(thread, handle) for handle in both]
    assert [type(task.outcome) for task in tasks] == [Lost, Lost], tasks


@pytest.mark.parametrize(
    ("habit", "says"),
    [
        ("broken", "ended with exit code 1. It said on stderr: no licence"),
        ("newer", "speaks version 7 of ACP, and not 1"),
    ],
)
async def test_a_program_that_does_not_become_an_agent_fails_with_what_it_said(
    peer: Peer, habit: str, says: str
):
    async with peer.employed(habit) as thread:
        task = await ended(thread, await thread.start(Agent("one", "hello")))
        assert isinstance(task.outcome, Failed)
        assert task.outcome.code == "agent_not_started"
        assert says in task.outcome.message
        await none_runs(peer)


async def test_a_program_that_does_not_answer_fails_with_what_it_printed(peer: Peer):
    clock = FakeClock()
    agents = {"one": peer.settings("silent", "noisy", options={"start": 60.0})}
    async with Meantime.open(peer.ledger, agents=agents, clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Agent("one", "hello"))
        await peer.until("requests")
        await clock.advance(60.0)
        task = await ended(thread, handle)
        assert isinstance(task.outcome, Failed)
        assert task.outcome.code == "agent_not_started"
        assert (
            "did not answer initialize within 60 seconds. It printed a line that is not a message: 'Welcome!'"
        ) in task.outcome.message
        await none_runs(peer)


async def none_runs(peer: Peer) -> None:
    starts = [int(pid) for pid in peer.lines("starts")]
    await until_async(lambda: not any(map(runs, starts)), "none of the processes runs")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"command": ("no-such-agent", "acp")}, "The program no-such-agent of the agent one is not there"),
        ({"command": ()}, "command of the agent one is missing"),
        ({"profile": "gosse"}, "profile='gosse' is unknown"),
        ({"options": {"modus": "x"}}, "modus"),
        ({"options": {"mcp_servers": {"bg": {}}}}, "needs a command or a url"),
        ({"tools": ()}, "tools of an ACP agent are its own"),
        ({"profile": "goose", "options": {"shared": True}}, "goose needs a process for each session"),
    ],
)
async def test_an_agent_that_can_never_run_is_refused_at_once(peer: Peer, more: dict[str, Any], says: str):
    from msgspec.structs import replace

    settings = replace(peer.settings(), **more)
    with pytest.raises(InvalidInput, match=says):
        async with Meantime.open(":memory:", agents={"one": settings}) as mt:
            await mt.thread("conv-1").start(Agent("one", "hello"))
    assert not peer.lines("starts")


@pytest.mark.breadth
async def test_a_kill_of_its_guard_is_an_end_too(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps({"wait": "never"}))
        await peer.until("waits")
        agent = int(peer.lines("starts")[0])
        guard = int(Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(guard, signal.SIGKILL)
        task = await ended(thread, handle)
        assert isinstance(task.outcome, Lost)
        await until_async(lambda: not runs(agent), "the agent is gone")


async def test_an_agent_hands_in_what_it_has_when_its_budget_is_spent(peer: Peer):
    calls = {"call": "look", "output": "x"}
    async with peer.employed(budget=Budget(tool_calls=1)) as thread:
        handle = await thread.start(steps(calls, {"wait": "never"}))
        task = await ended(thread, handle)
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "budget_spent"
    assert str(task.outcome.partial).startswith("echo The budget of tool calls is spent.")
