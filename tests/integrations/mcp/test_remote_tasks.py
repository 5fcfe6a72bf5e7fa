"""A server that answers with a task of its own is followed to its end, also over our own restart."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Failed, Handle, Lost, Meantime, Settings, Status, Thread, Tool
from meantime.app.system_clock import SystemClock
from meantime.integrations.mcp import remote_task
from meantime.integrations.mcp.runner import McpRunner
from meantime.testing import FakeClock
from outcomes import completed, failed

from .conftest import PATIENT, Peer, ended, seen

pytestmark = pytest.mark.anyio


@pytest.fixture
def tool(era: bool) -> str:
    return "s/task" if era else "s/task_of_2025"


@asynccontextmanager
async def opened(ledger: Path, peer: Peer, era: bool, settings: Settings = PATIENT) -> AsyncIterator[Thread]:
    async with Meantime.open(ledger, settings=settings, servers={"s": peer.server(modern=era)}) as mt:
        yield mt.thread("a")


async def recorded(handle: Handle) -> None:
    """The server's id of the work is on disk."""
    await seen(handle, lambda task: task.session)


async def test_it_is_followed_to_its_end(thread: Thread, peer: Peer, tool: str):
    handle = await thread.start(Tool(tool, {"mark": "m"}))
    progress = await seen(handle, lambda task: task.progress)
    assert progress.message == "half way"
    peer.open_gate()
    assert await handle.result() == "done m"


async def test_a_failure_of_the_task(thread: Thread, peer: Peer, tool: str):
    peer.open_gate()
    outcome = (await ended(thread, tool, fails=True)).outcome
    assert isinstance(outcome, Failed)
    assert "the task broke" in outcome.message


async def test_a_failure_of_the_tool(thread: Thread, peer: Peer, tool: str):
    """`isError` is a completed task there, and a failed one here."""
    peer.open_gate()
    outcome = (await ended(thread, tool, tool_fails=True, mark="badly")).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message) == ("tool_error", "done badly")


async def test_a_task_that_asks_for_input_is_cancelled(thread: Thread, peer: Peer, tool: str):
    outcome = (await ended(thread, tool, asks=True, id="asking")).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == "input_required"
    assert "tasks/cancel asking" in peer.lines("asked")


@pytest.mark.parametrize("era", [True])
async def test_a_task_whose_state_says_what_it_asks_waits_for_the_answer(thread: Thread, peer: Peer):
    peer.open_gate()
    handle = await thread.start(Tool("s/task", {"elicits": True, "id": "asking"}))
    question = await seen(handle, lambda task: task.question)
    assert question.text == "Which?"
    await thread.answer(handle, "blue")
    assert await handle.result() == 'done {"colour": "blue"}'
    assert peer.lines("asked").count("tasks/update asking") == 1


async def test_a_question_of_the_servers_task_is_answered_over_a_restart(peer: Peer, tmp_path: Path):
    peer.open_gate()
    async with opened(tmp_path / "work.db", peer, True) as thread:
        handle = await thread.start(Tool("s/task", {"elicits": True, "id": "asking"}))
        await seen(handle, lambda task: task.question)
        await recorded(handle)
    async with opened(tmp_path / "work.db", peer, True) as thread:
        await thread.answer(handle.id, "green")
        (task,) = await thread.wait(handle.id, timeout=LIMIT)
        assert completed(task).result == 'done {"colour": "green"}'
        assert peer.lines("asked").count("tasks/update asking") == 1


async def test_a_task_that_vanishes_is_lost(thread: Thread, peer: Peer, tool: str):
    handle = await thread.start(Tool(tool, {"id": "gone"}))
    await peer.until("asked", "tasks/get gone")
    for file in (peer.folder / "tasks").iterdir():
        file.unlink()
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert isinstance(task.outcome, Lost)
    assert "does not know its task gone any more" in task.outcome.reason


async def test_a_cancel_is_passed_on(thread: Thread, peer: Peer, tool: str):
    handle = await thread.start(Tool(tool, {"id": "mine"}))
    await peer.until("asked", "tasks/get mine")
    answer = await thread.cancel(handle, wait=True)
    assert answer.task.status is Status.CANCELLED
    assert "tasks/cancel mine" in peer.lines("asked")


async def test_a_cancel_by_the_server_is_a_failure(thread: Thread, peer: Peer, tool: str):
    handle = await thread.start(Tool(tool, {"id": "theirs"}))
    await peer.until("asked", "tasks/get theirs")
    (peer.folder / "cancelled").mkdir()
    (peer.folder / "cancelled" / b"theirs".hex()).touch()
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert failed(task).code == "cancelled_by_server"


async def test_a_notification_is_sooner_than_the_next_look(
    thread: Thread, peer: Peer, tool: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(remote_task, "LATEST", 2 * LIMIT)
    handle = await thread.start(Tool(tool, {"poll": 3_600_000, "id": "long", "talks": True}))
    await peer.until("asked", "tasks/get long")
    peer.open_gate("half")
    peer.open_gate()
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert completed(task).result == "done"
    assert peer.lines("asked").count("tasks/get long") <= 3


async def test_progress_by_the_token_of_the_call_is_still_heard(thread: Thread, peer: Peer, tool: str):
    handle = await thread.start(Tool(tool, {"id": "talking", "talks": True}))
    await peer.until("asked", "tasks/get talking")
    peer.open_gate("half")
    progress = await seen(
        handle, lambda task: task.progress if task.progress and task.progress.percent else None
    )
    assert progress.percent == 75.0
    peer.open_gate()
    assert await handle.result() == "done"


async def test_its_server_may_be_started_anew_meanwhile(thread: Thread, peer: Peer, tool: str):
    handle = await thread.start(Tool(tool, {"id": "kept"}))
    await peer.until("asked", "tasks/get kept")
    os.kill(peer.pids[0], signal.SIGKILL)
    await until_async(lambda: len(peer.pids) == 2, "the server is started anew")
    peer.open_gate()
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert completed(task).result == "done"
    assert peer.lines("calls") == [tool.partition("/")[2]]


async def test_a_server_that_is_gone_for_good_is_given_up(peer: Peer, era: bool, tool: str):
    runner = McpRunner({"s": peer.server(modern=era)}, SystemClock(), patience=2)
    async with Meantime.open(":memory:", settings=PATIENT, runners=[runner]) as mt:
        handle = await mt.thread("a").start(Tool(tool, {"id": "kept"}))
        await peer.until("asked", "tasks/get kept")
        runner._connections["s"]._server = peer.server("dies")
        os.kill(peer.pids[0], signal.SIGKILL)
        (task,) = await mt.thread("a").wait(handle, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "its task kept" in task.outcome.reason


async def test_its_timeout_goes_on_with_the_next_owner_whatever_the_wall_clock_says(
    tmp_path: Path, peer: Peer, era: bool, tool: str
):
    ledger, clock = tmp_path / "work.db", FakeClock()
    given = {"settings": PATIENT, "servers": {"s": peer.server(modern=era)}, "clock": clock}
    async with Meantime.open(ledger, **given) as mt:
        handle = await mt.thread("a").start(Tool(tool, {"id": "slow"}), timeout=60)
        await recorded(handle)
        await clock.advance(25)
    clock.jump(86_400)
    async with Meantime.open(ledger, **given) as mt:
        await peer.until("asked", "tasks/get slow")
        assert (await mt.get(handle.id)).status is Status.RUNNING
        assert 35.0 in [round(seconds, 1) for seconds in clock.due_in]


@pytest.mark.parametrize("id", ["plain", "with space/and: ä", "x" * 90])
async def test_a_close_leaves_it_and_the_next_owner_takes_it_up(
    tmp_path: Path, peer: Peer, era: bool, tool: str, id: str
):
    ledger = tmp_path / "work.db"
    async with opened(ledger, peer, era) as thread:
        handle = await thread.start(Tool(tool, {"mark": "m", "id": id}))
        await recorded(handle)
    peer.open_gate()
    async with opened(ledger, peer, era) as thread:
        (task,) = await thread.wait(handle.id, timeout=LIMIT)
        assert completed(task).result == "done m"
        async with thread.turn() as turn:
            assert [notice.task_id for notice in turn.notices] == [handle.id]
            await turn.ack()
    assert len(peer.lines("calls")) == 1
    assert not [line for line in peer.lines("asked") if "cancel" in line]


async def test_an_id_that_does_not_fit_is_followed_but_not_over_a_close(
    tmp_path: Path, peer: Peer, era: bool, tool: str
):
    async with opened(tmp_path / "work.db", peer, era) as thread:
        handle = await thread.start(Tool(tool, {"id": "y" * 124}))
        await peer.until("asked", f"tasks/get {'y' * 124}")
    assert f"tasks/cancel {'y' * 124}" in peer.lines("asked")
    async with opened(tmp_path / "work.db", peer, era) as thread:
        assert (await thread.get(handle.id)).status is Status.CANCELLED


async def test_a_close_that_stops_everything_stops_it_too(tmp_path: Path, peer: Peer, era: bool, tool: str):
    settings = Settings(stop_grace=LIMIT, stop_deadline=LIMIT, on_close="stop")
    async with opened(tmp_path / "work.db", peer, era, settings) as thread:
        handle = await thread.start(Tool(tool, {"id": "x"}))
        await recorded(handle)
    assert "tasks/cancel x" in peer.lines("asked")


async def test_an_owner_that_does_not_know_the_server_any_more(
    tmp_path: Path, peer: Peer, era: bool, tool: str
):
    ledger = tmp_path / "work.db"
    async with opened(ledger, peer, era) as thread:
        handle = await thread.start(Tool(tool, {"id": "x"}))
        await recorded(handle)
    async with Meantime.open(ledger) as mt:
        (task,) = await mt.thread("a").wait(handle.id, timeout=LIMIT)
        assert isinstance(task.outcome, Lost)
        assert "not configured here any more" in task.outcome.reason
