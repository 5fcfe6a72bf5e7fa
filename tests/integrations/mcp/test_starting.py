"""Servers that do not start, end in the middle, or are not needed any more."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Failed, Lost, Meantime, Status, StdioServer, Thread, Tool
from meantime.integrations.mcp import shared_connection
from outcomes import completed, lost

from .conftest import PATIENT, Peer, ended, lives, runner_of

pytestmark = pytest.mark.anyio


async def outcome_with(server: StdioServer) -> Failed:
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        outcome = (await ended(mt.thread("a"), "s/echo")).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == "server_not_started"
    return outcome


async def test_one_that_ends_at_once_is_failed_with_its_last_words(peer: Peer):
    outcome = await outcome_with(peer.server("dies"))
    assert "ended with exit code 3" in outcome.message
    assert "KeyError: 'TOKEN'" in outcome.message


async def test_one_that_is_not_there(tmp_path: Path):
    assert "No such file" in (await outcome_with(StdioServer(command=["/no/such/server"]))).message


async def test_a_folder_that_is_not_there(peer: Peer):
    server = StdioServer(command=[sys.executable], cwd="/no/such/folder")
    assert "/no/such/folder" in (await outcome_with(server)).message


@pytest.mark.breadth
async def test_one_that_hangs_at_initialise(peer: Peer):
    assert (
        "did not answer within 1 s" in (await outcome_with(peer.server("silent", start_timeout=1.0))).message
    )
    assert not any(map(lives, peer.pids))


async def test_a_close_does_not_wait_for_one_that_never_answers(peer: Peer):
    server = peer.server("silent", start_timeout=5 * LIMIT)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        await mt.thread("a").start(Tool("s/echo"))
        await until_async(lambda: peer.pids, "the server has begun")
    assert not any(map(lives, peer.pids))


@pytest.mark.breadth
async def test_one_that_prints_something_else_only():
    server = StdioServer(command=["sh", "-c", "echo Listening on port 80"], start_timeout=LIMIT)
    message = (await outcome_with(server)).message
    assert "1 lines of its stdout were not messages; the first: 'Listening on port 80'" in message


async def test_one_of_another_protocol_version(peer: Peer):
    assert "1999-01-01" in (await outcome_with(peer.server("version"))).message


async def test_calls_that_wait_share_one_start(peer: Peer):
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": peer.server("dies")}) as mt:
        tasks = await asyncio.gather(*(ended(mt.thread("a"), "s/echo") for _ in range(5)))
        assert {task.status for task in tasks} == {Status.FAILED}
        assert len(peer.pids) == 1


async def test_a_crash_loses_what_ran_and_the_next_call_has_a_new_server(thread: Thread, peer: Peer):
    running = [await thread.start(Tool("s/hang", {"mark": str(n)})) for n in range(3)]
    await until_async(lambda: len(peer.lines("waiting")) == 3, "three calls are under way")
    tasks = [await ended(thread, "s/crash"), *await thread.wait(*running, timeout=LIMIT)]
    for task in tasks:
        assert isinstance(task.outcome, Lost)
        assert "ended with exit code 7" in lost(task).reason
        assert "Whether the tool did its work is not known" in lost(task).reason
        assert "a wheel came off" in lost(task).reason
    assert completed(await ended(thread, "s/echo", text="again")).result == "again"
    assert len(peer.pids) == 2


async def test_a_kill_from_outside_names_the_signal(thread: Thread, peer: Peer):
    handle = await thread.start(Tool("s/hang", {"mark": "m"}))
    await peer.until("waiting", "m")
    os.kill(peer.pids[0], signal.SIGKILL)
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert "was killed by signal 9" in lost(task).reason


async def test_a_kill_of_its_guard_is_an_end_too(thread: Thread, peer: Peer):
    handle = await thread.start(Tool("s/hang", {"mark": "m"}))
    await peer.until("waiting", "m")
    stat = Path(f"/proc/{peer.pids[0]}/stat").read_text().rpartition(")")[2].split()
    os.kill(int(stat[1]), signal.SIGKILL)
    await until_async(lambda: not lives(int(stat[1])), "the guard is gone")
    await thread.cancel(handle, wait=True)
    os.kill(peer.pids[0], signal.SIGKILL)  # nobody is left to do it


async def test_an_end_between_two_calls_is_noticed(mt: Meantime, thread: Thread, peer: Peer):
    """A call into the gap, before we have heard of it, would be lost."""
    await ended(thread, "s/echo")
    connection = runner_of(mt)._connections["s"]._connection
    assert connection is not None
    os.kill(peer.pids[0], signal.SIGKILL)
    await until_async(lambda: not connection.is_open, "we have heard of its end")
    assert completed(await ended(thread, "s/echo", text="again")).result == "again"


async def test_what_may_run_again_does(thread: Thread, peer: Peer):
    """retry="idempotent": a call that was lost goes back into the queue, with a new server."""
    handle = await thread.start(Tool("s/gate", {"mark": "m"}), retry="idempotent")
    await peer.until("waiting", "m")
    os.kill(peer.pids[0], signal.SIGKILL)
    await peer.until("waiting", "m", 2)
    peer.open_gate()
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert (completed(task).result, task.run.attempt) == ("through m", 2)


@pytest.mark.breadth
async def test_starts_wait_longer_and_longer_up_to_a_cap(peer: Peer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shared_connection, "FIRST_WAIT", 0.1)
    monkeypatch.setattr(shared_connection, "LONGEST_WAIT", 0.4)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": peer.server("dies")}) as mt:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for bound in (0.1, 0.2, 0.4, 0.4, 0.4):
            await ended(mt.thread("a"), "s/echo")
            assert runner_of(mt)._connections["s"]._rests_until - loop.time() <= bound
        assert loop.time() - began > 0.99 * (0.1 + 0.2 + 0.4 + 0.4)
    assert len(peer.pids) == 5


async def test_an_idle_server_is_stopped_and_comes_back(peer: Peer, era: bool):
    server = peer.server(modern=era, idle=0.2)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        thread = mt.thread("a")
        await ended(thread, "s/echo")
        await until_async(lambda: not lives(peer.pids[0]), "the idle server is gone")
        assert completed(await ended(thread, "s/echo", text="back")).result == "back"


async def test_a_running_call_keeps_its_server(peer: Peer, era: bool):
    server = peer.server(modern=era, idle=0.1)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        thread = mt.thread("a")
        handle = await thread.start(Tool("s/gate"))
        await peer.until("waiting", "")
        await stays_async(lambda: lives(peer.pids[0]), "the server of a running call lives")
        peer.open_gate()
        (task,) = await thread.wait(handle, timeout=LIMIT)
        assert completed(task).result == "through"


async def test_its_environment_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET", "of mine")
    out = tmp_path / "env"
    server = StdioServer(command=["sh", "-c", f"env >{out}"], env={"TOKEN": "yours"})
    await outcome_with(server)
    found = out.read_text()
    assert "TOKEN=yours" in found
    assert "SECRET" not in found
    assert "PATH=" in found


async def test_two_servers_do_not_know_of_each_other(tmp_path: Path):
    one, two = Peer(tmp_path / "one"), Peer(tmp_path / "two")
    servers = {"one": one.server(), "two": two.server(modern=True)}
    async with Meantime.open(":memory:", settings=PATIENT, servers=servers) as mt:
        thread = mt.thread("a")
        waiting = await thread.start(Tool("two/gate"))
        await two.until("waiting", "")
        await ended(thread, "one/crash")
        two.open_gate()
        (task,) = await thread.wait(waiting, timeout=LIMIT)
        assert completed(task).result == "through"
