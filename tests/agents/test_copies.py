"""P11: the agents of a ledger belong to it, and not to a copy of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime import Lost
from meantime.ports.session import SessionAbilities
from meantime.testing.scripted_host import ScriptedHost

from .stage import permission, start, waits, working
from .test_resuming import Held

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("P11")
async def test_a_copy_does_not_go_on_with_an_agent_that_waits_for_an_answer(tmp_path: Path):
    heard: list[str] = []

    async def turn(prompt, hearer):
        heard.append(prompt.text)
        reply = await hearer.ask(permission())
        return f"was told {reply.choice}"

    original, copy = tmp_path / "original", tmp_path / "copy"
    host = ScriptedHost(turn, SessionAbilities(resume=True))
    async with working(original, host) as mt:
        handle = await start(mt)
        await waits(mt, handle.id)
    shutil.copytree(original, copy)
    heard.clear()
    async with working(copy, ScriptedHost(turn, SessionAbilities(resume=True))) as mt:
        task = await mt.get(handle.id)
        assert isinstance(task.outcome, Lost)
        assert "copy" in task.outcome.reason
        assert [notice.task_id for notice in await mt.notices()] == [handle.id]
    assert heard == []
    async with working(original, host) as mt:
        assert (await mt.get(handle.id)).status == "waiting"


@pytest.mark.behaviour("P3")
async def test_what_was_said_to_an_agent_for_later_is_left_to_the_original(tmp_path: Path):
    turn, second = Held(), Held()
    original, copy = tmp_path / "original", tmp_path / "copy"
    async with working(original, ScriptedHost(turn)) as mt:
        handle = await start(mt)
        await turn.began.wait()
        assert await mt.send(handle.id, "and then this") == "queued"
        shutil.copytree(original, copy)
        async with working(copy, ScriptedHost(second)) as of_copy:
            task = await of_copy.get(handle.id)
            assert (task.status, task.run.number, task.follow_up) == ("lost", 1, "")
        turn.gate.set()
        await until_async(lambda: turn.prompts == ["do it", "and then this"], "the original hears both")
    assert second.prompts == []
