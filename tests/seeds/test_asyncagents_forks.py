"""Seed 001: what a forked task inherits, by the runner of agents with a scripted host of sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from speaking import Speaker
from tests.waiting import LIMIT

from meantime import Meantime
from meantime.kernel.lines import Kind, Line
from meantime.ports.session import AgentSettings, SessionAbilities
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing.scripted_host import ScriptedHost

pytestmark = pytest.mark.anyio
SAID = [
    Line(role="user", text="Find out why the build fails."),
    *(
        Line(role="tool", kind=Kind.RESULT, tool="read", text=f"file {number}: " + "x" * 5_000)
        for number in range(20)
    ),
    Line(role="assistant", text="It is the linker."),
]


def host(*, copies: bool) -> ScriptedHost:
    async def turn(prompt, hearer):
        return "I know what you know."

    return ScriptedHost(turn, SessionAbilities(fork=copies))


@asynccontextmanager
async def opened(folder: Path, sessions: ScriptedHost) -> AsyncIterator[Meantime]:
    agents = {"explore": HostedAgent(AgentSettings(runner="python"), sessions)}
    async with Meantime.open(folder / "work.db", agents=agents) as mt:
        yield mt


@pytest.mark.behaviour("L22")
@pytest.mark.scenario("001", "Launch forked background task")
async def test_a_fork_is_launched_with_the_parents_context(tmp_path: Path) -> None:
    """By the session's own copy, where the host of the new agent has one."""
    sessions = host(copies=True)
    sessions.sessions["s-parent"] = list(SAID)
    async with opened(tmp_path, sessions) as mt:
        agent = Speaker(mt, "asyncagents", session="s-parent")
        said = await agent.call("task", description="go on", prompt="Fix it.", agent="explore", fork=True)
        assert (said.data["status"], said.data["isForked"]) == ("running", True)
        id = said.data["task_id"]
        await agent.thread.wait(id, timeout=LIMIT)
        session = (await agent.thread.get(id)).session
        assert session not in (None, "s-parent")
        assert sessions.sessions[session][: len(SAID)] == SAID
        preamble, _, asked = sessions.prompts[0].text.partition("\n\n")
        assert "It may have been shortened to fit." in preamble
        assert "read again what you rely on" in preamble
        assert asked == "Fix it."
        assert sessions.sessions["s-parent"] == SAID, "the parent's own goes on as it was"


@pytest.mark.behaviour("L22")
@pytest.mark.scenario("001", "Launch forked background task")
async def test_a_fork_is_given_the_conversation_as_text(tmp_path: Path) -> None:
    """Where nobody can copy it, what was said is handed over: results of tools the shorter the older, and
    never more than fits."""
    sessions = host(copies=False)
    async with opened(tmp_path, sessions) as mt:
        agent = Speaker(mt, "asyncagents", context=lambda: SAID)
        await agent.done(fork=True)
        (prompt,) = sessions.prompts
        assert "Find out why the build fails." in prompt.text
        assert "It is the linker." in prompt.text
        lengths = [len(line) for line in prompt.text.split("\n") if line.startswith("[read answers]")]
        assert [length > 4_000 for length in lengths] == [False] * 15 + [True] * 5
        assert [length > 1_000 for length in lengths] == [False] * 5 + [True] * 15


@pytest.mark.behaviour("L22")
@pytest.mark.scenario("001", "Launch forked background task")
async def test_a_fork_is_given_our_own_transcript(tmp_path: Path) -> None:
    sessions = host(copies=False)
    async with opened(tmp_path, sessions) as mt:
        agent = Speaker(mt, "asyncagents")
        given = {"description": "go on", "prompt": "Fix it.", "agent": "explore", "fork": True}
        blank = await agent.call("task", **given)
        assert blank.code == "nothing_to_fork", "a fork never starts blank"
        transcript = agent.thread.transcript
        transcript.add(None, "It is the linker.")
        await transcript.save()
        assert (await agent.call("task", **given)).code == ""
        await agent.thread.wait(timeout=LIMIT)
        assert "It is the linker." in sessions.prompts[0].text


@pytest.mark.behaviour("L23")
@pytest.mark.scenario("001", "Preamble content")
async def test_the_preamble_says_what_was_cut(tmp_path: Path) -> None:
    """It is told that the context may be cut, what was, and to read files again."""
    sessions = host(copies=False)
    async with opened(tmp_path, sessions) as mt:
        await Speaker(mt, "asyncagents", context=lambda: SAID).done(fork=True)
        preamble = sessions.prompts[0].text.partition("<conversation>")[0]
        assert "15 results of tools are shortened" in preamble
        assert "read again what you rely on" in preamble
