"""A timeout that the maximum reduces is said when the task starts and when it ends, in every dialect."""

from __future__ import annotations

from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Meantime, Said, Settings, Shell, Thread
from meantime.dialects import names
from meantime.testing import FakeSessionRunner

pytestmark = pytest.mark.anyio

NOTE = "7200 s were asked for; 1800 s is the maximum."
BY_DEFAULT = "3600 s is the default; 1800 s is the maximum."


async def _start(thread: Thread, dialect: str) -> tuple[Said, str]:
    """In the dialect's own words; two of them cannot ask for a timeout, and get the default."""
    tools = thread.toolset(dialect, commands=Shell)
    session = {"description": "look", "prompt": "Look.", "agent": "a"}
    calls: dict[str, tuple[str, dict[str, Any], str]] = {
        "meantime": ("start", {"command": "true", "timeout": 7200}, NOTE),
        "background": ("background_task", session, BY_DEFAULT),
        "asyncagents": ("asyncagents_task", session, BY_DEFAULT),
        "llxprt": (
            "task",
            {"subagent_name": "a", "goal_prompt": "Look.", "async": True, "timeout_seconds": 7200},
            NOTE,
        ),
        "jaato": (
            "startBackgroundTask",
            {
                "plugin_name": "cli",
                "tool_name": "runCommand",
                "arguments": {"command": "true"},
                "timeout_seconds": 7200,
            },
            NOTE,
        ),
        "psi": (
            "run_tool",
            {"tool": "shell", "arguments": {"command": "true"}, "background": True},
            BY_DEFAULT,
        ),
    }
    name, arguments, note = calls[dialect]
    said = await tools.call(name, arguments)
    assert not said.code, said
    return said, note


@pytest.mark.behaviour("L13", "R22")
@pytest.mark.parametrize("dialect", names())
async def test_a_reduced_timeout_is_said_at_the_start_and_at_the_end(dialect: str):
    settings = Settings(default_timeout=3600, max_timeout=1800)
    async with Meantime.open(":memory:", runners=[FakeSessionRunner("done")], settings=settings) as mt:
        thread = mt.thread("conv-1")
        said, note = await _start(thread, dialect)
        assert note in said.text
        await thread.wait(timeout=LIMIT)
        async with thread.turn() as turn:
            (message,) = turn.render(dialect)
            await turn.ack()
        assert note in "".join(part.text for part in message.parts)


@pytest.mark.behaviour("L13")
@pytest.mark.parametrize("dialect", names())
async def test_a_timeout_that_is_granted_is_not_spoken_of(dialect: str):
    async with Meantime.open(":memory:", runners=[FakeSessionRunner("done")]) as mt:
        said, _ = await _start(mt.thread("conv-1"), dialect)
        assert "maximum" not in said.text
