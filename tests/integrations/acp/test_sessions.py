"""Sessions outlive processes, the agent's and ours. The agent is a scripted stand-in."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, NotResumable
from meantime.kernel.fork_context import COPIED
from meantime.kernel.model import Completed, Failed, Lost
from outcomes import failed

from .conftest import Peer, ended, runs, steps

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
OWNER = Path(__file__).with_name("owner.py")


@pytest.mark.parametrize("habits", [[], ["resume"]])
async def test_a_session_goes_on_after_a_restart_and_what_is_replayed_is_not_heard_again(
    peer: Peer, habits: list[str]
):
    async with peer.employed(*habits) as thread:
        handle = await thread.start(Agent("one", "first"))
        await ended(thread, handle)
    async with peer.employed(*habits) as thread:
        handle = await thread.resume(handle.id, json.dumps([{"cost": 5.5}, {"say": "second"}]))
        task = await ended(thread, handle)
        said = [line.text for line in await thread.lines(handle) if line.role == "assistant"]
    assert isinstance(task.outcome, Completed)
    assert said == ["echo first", "second"]
    asked = "session/resume" if habits else "session/load"
    assert asked in peer.lines("requests")
    if not habits:
        assert task.progress is not None
        assert task.progress.cost == 0.5  # the session had cost 5.0 when it was loaded


async def test_a_session_that_the_agent_has_lost_is_gone_and_says_so(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(Agent("one", "first"))
        await ended(thread, handle)
    for file in peer.folder.glob("*.session"):
        file.unlink()
    async with peer.employed() as thread:
        task = await ended(thread, await thread.resume(handle.id, "second"))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "session_gone"
    assert "Resource not found" in task.outcome.message


async def test_an_agent_that_loads_what_it_does_not_know_is_asked_for_its_list_before(peer: Peer):
    """As qwen does: it would make a new session under the old name."""
    async with peer.employed("list", profile="qwen") as thread:
        handle = await thread.start(Agent("one", "first"))
        await ended(thread, handle)
    for file in peer.folder.glob("*.session"):
        file.unlink()
    async with peer.employed("list", profile="qwen") as thread:
        task = await ended(thread, await thread.resume(handle.id, "second"))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "session_gone"
    assert "session/load" not in peer.lines("requests")


async def test_an_agent_without_load_cannot_go_on_in_another_process(peer: Peer):
    async with peer.employed("no-load") as thread:
        handle = await thread.start(Agent("one", "first"))
        await ended(thread, handle)
    async with peer.employed("no-load") as thread:
        task = await ended(thread, await thread.resume(handle.id, "second"))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "session_gone"


async def test_an_agent_without_load_that_is_killed_does_not_promise_its_session(peer: Peer):
    async with peer.employed("no-load") as thread:
        handle = await thread.start(steps({"wait": "never"}))
        await peer.until("waits")
        os.kill(int(peer.lines("starts")[0]), signal.SIGKILL)
        task = await ended(thread, handle)
        assert isinstance(task.outcome, Lost)
        assert "so its own is gone" in task.outcome.reason
        task = await ended(thread, await thread.resume(handle, "go on"))
    assert failed(task).code == "session_gone"


async def test_a_kill_of_our_own_process_ends_the_agent_and_its_task_can_be_resumed(peer: Peer):
    turn = json.dumps([{"child": "children"}, {"say": "so far"}, {"wait": "never"}])
    settings = msgspec.json.encode(peer.settings()).decode()
    owner = await asyncio.create_subprocess_exec(
        *(sys.executable, str(OWNER), str(peer.ledger), settings, turn), stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    id = (await owner.stdout.readline()).decode().strip()
    await peer.until("waits")
    owner.kill()
    await owner.wait()
    async with peer.employed() as thread:
        (task,) = await thread.wait(id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "Its session is kept." in task.outcome.reason
        task = await ended(thread, await thread.resume(id, "go on"))
        said = [line.text for line in await thread.lines(id) if line.role == "assistant"]
    assert isinstance(task.outcome, Completed)
    assert said[-1] == "echo go on"
    (child,) = peer.lines("children")
    first = int(peer.lines("starts")[0])
    await until_async(lambda: not runs(int(child)) and not runs(first), "the agent and its child are gone")


async def test_a_fork_is_the_agents_own_where_it_can(peer: Peer):
    async with peer.employed("fork", profile="claude") as thread:
        source = await thread.start(Agent("one", "first"))
        await ended(thread, source)
        fork = await thread.fork(source, "second")
        task = await ended(thread, fork)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == f"echo {COPIED}\n\nsecond"
    kept = json.loads((peer.folder / f"{task.session}.session").read_text())
    assert kept == ["first", f"{COPIED}\n\nsecond"]
    assert "session/fork" in peer.lines("requests")


async def test_a_busy_session_is_forked_without_disturbing_it(peer: Peer):
    async with peer.employed("fork", profile="claude") as thread:
        source = await thread.start(steps({"wait": "go"}, {"say": "done"}))
        await peer.until("waits")
        fork = await ended(thread, await thread.fork(source, "meanwhile"))
        assert isinstance(fork.outcome, Completed)
        peer.touch("go")
        assert isinstance((await ended(thread, source)).outcome, Completed)


async def test_elsewhere_a_fork_is_told_what_was_said(peer: Peer):
    async with peer.employed() as thread:
        source = await thread.start(Agent("one", "first"))
        await ended(thread, source)
        task = await ended(thread, await thread.fork(source, "second"))
    assert isinstance(task.outcome, Completed)
    kept = json.loads((peer.folder / f"{task.session}.session").read_text())
    assert len(kept) == 1
    assert "echo first" in kept[0]
    assert kept[0].endswith("second")
    assert "session/fork" not in peer.lines("requests")


async def test_a_task_whose_session_nobody_made_cannot_be_resumed(peer: Peer):
    async with peer.employed("broken") as thread:
        handle = await thread.start(Agent("one", "first"))
        await ended(thread, handle)
        with pytest.raises(NotResumable):
            await thread.resume(handle, "second")


async def test_mcp_servers_and_the_mode_are_given_to_the_session(peer: Peer):
    servers: dict[str, Any] = {
        "bg": {"command": ["server", "-x"], "env": {"A": "1"}},
        "web": {"url": "http://127.0.0.1:1/mcp", "headers": {"K": "v"}},
    }
    async with peer.employed(options={"mcp_servers": servers, "mode": "ask"}) as thread:
        handle = await thread.start(Agent("one", "hello"))
        await ended(thread, handle)
    stdio, http = json.loads(peer.lines("servers")[0])
    assert (stdio["name"], stdio["command"], stdio["args"]) == ("bg", "server", ["-x"])
    env = {pair["name"]: pair["value"] for pair in stdio["env"]}
    assert (env["A"], env["MEANTIME_TASK"]) == ("1", handle.id)
    headers = [{"name": "K", "value": "v"}]
    assert http == {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": headers}
    assert "session/set_mode" in peer.lines("requests")


@pytest.mark.parametrize("more", [{"options": {"mode": "yolo"}}, {"model": "no/such"}])
async def test_a_mode_or_model_that_the_agent_does_not_have_is_refused(peer: Peer, more: dict[str, Any]):
    async with peer.employed(**more) as thread:
        task = await ended(thread, await thread.start(Agent("one", "hello")))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "agent_refused"
    assert "session/prompt" not in peer.lines("requests")
