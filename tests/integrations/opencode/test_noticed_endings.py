"""Seeds 000 and 001: how the ending of a background session is noticed. Both are real sessions of OpenCode:
the one that works, and its parent, which is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.waiting import LIMIT, until_async

from integrations.agents.installed import OPENCODE, needs
from integrations.agents.model import script
from meantime import Meantime, OpenCodeHost
from meantime.integrations.opencode import session_turn
from meantime.integrations.opencode.errors import Away
from meantime.integrations.opencode.wire.api_client import ApiClient
from meantime.ports.session import AgentSettings

from .serving import Running

pytestmark = [
    needs(OPENCODE),
    pytest.mark.xdist_group("opencode-detecting"),
    pytest.mark.anyio,
    pytest.mark.agents,
]
NEVER = 2 * LIMIT  # seconds: a look that comes so late makes a test fail
IDLE = "session.idle"
RESULT = "Twelve modules, and none of them is circular."


class Launched(NamedTuple):
    task: str
    word: str
    parent: str  # its session
    gate: Path  # the model answers when it is there


@pytest.fixture
async def mt(tmp_path: Path, server: Running) -> AsyncIterator[Meantime]:
    explore = AgentSettings(runner="opencode", url=server.url, cwd=str(server.project))
    async with Meantime.open(tmp_path / "work.db", agents={"explore": explore}) as mt:
        yield mt


async def launch(server: Running, mt: Meantime, dialect: str, word: str, gate: Path) -> Launched:
    """By the dialect's own tool, in the thread of a session that is attached as its parent."""
    parent = server.session(f"parent-{word} " + script({"text": "It runs."}))
    mt.attach(parent, OpenCodeHost(server.url, parent, dialect=dialect))  # pyright: ignore[reportArgumentType]
    prompt = f"{word} " + script({"text": RESULT, "wait_file": str(gate)})
    order = {"description": "count the modules", "prompt": prompt, "agent": "explore"}
    said = await mt.thread(parent).toolset(dialect).call(f"{dialect}_task", order)
    assert said.data["status"] == "running", said
    await until_async(lambda: server.asked(word), "the model is asked")
    return Launched(said.data["task_id"], word, parent, gate)


async def completed_and_told(server: Running, mt: Meantime, launched: Launched) -> None:
    """The task is completed, and its parent was asked once more, with the whole result."""
    launched.gate.touch()
    task = (await asyncio.wait_for(mt.thread(launched.parent).wait(launched.task), LIMIT))[0]
    assert (task.status, await mt.thread(launched.parent).result(task.id)) == ("completed", RESULT)
    asked = await until_async(lambda: server.asked(f"parent-{launched.word}")[1:], "the parent is told")
    assert "count the modules" in asked[0].text
    assert asked[0].text.count(RESULT) == 1
    await server.until_idle(launched.parent)
    assert len(server.asked(f"parent-{launched.word}")) == 2


@pytest.mark.behaviour("H20")
@pytest.mark.scenario("000", "Detect completion via event")
@pytest.mark.scenario("001", "Detect completion via event")
@pytest.mark.parametrize("dialect", ["background", "asyncagents"])
async def test_a_completion_is_detected_by_an_event(
    server: Running, mt: Meantime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str
):
    """Nothing but `session.idle` makes us look."""
    monkeypatch.setattr(session_turn, "HINTS", frozenset({IDLE}))
    monkeypatch.setattr(session_turn, "POLL", NEVER)
    launched = await launch(server, mt, dialect, f"by-event-{dialect}", tmp_path / "gate")
    await completed_and_told(server, mt, launched)


@pytest.mark.behaviour("H20")
@pytest.mark.scenario("000", "Fallback to polling")
@pytest.mark.scenario("001", "Fallback to polling")
@pytest.mark.parametrize("dialect", ["background", "asyncagents"])
async def test_a_completion_is_detected_by_polling_where_no_event_comes(
    server: Running, mt: Meantime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str
):
    """Other events come, and `session.idle` is missed: the next look finds the ending."""
    monkeypatch.setattr(session_turn, "HINTS", session_turn.HINTS - {IDLE})
    monkeypatch.setattr(session_turn, "POLL", 0.5)
    launched = await launch(server, mt, dialect, f"by-polling-{dialect}", tmp_path / "gate")
    await completed_and_told(server, mt, launched)


@pytest.mark.behaviour("H20")
@pytest.mark.scenario("000", "Fallback to polling")
@pytest.mark.scenario("001", "Fallback to polling")
async def test_a_completion_is_detected_by_polling_while_the_stream_is_cut(
    server: Running, mt: Meantime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """No event at all comes, and the stream cannot be opened again before the session is idle."""

    def cut(self: ApiClient) -> Any:
        raise Away("no events")

    monkeypatch.setattr(session_turn, "POLL", NEVER)  # without events it is looked more often
    monkeypatch.setattr(ApiClient, "events", cut)
    launched = await launch(server, mt, "background", "by-polling-cut", tmp_path / "gate")
    await completed_and_told(server, mt, launched)
