"""Every host of sessions passes every check of the public conformance suite."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.waiting import pause_async

from meantime.app.system_clock import SystemClock
from meantime.integrations.loops import Conversation
from meantime.integrations.loops.session_host import PythonSessionHost
from meantime.ports.session import AgentSettings, Brief, Hearer, Prompt, SessionAbilities, Turned
from meantime.testing import LastingScriptedHost, ScriptedHost, exercise_session_host
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture
from meantime.testing.session_host.host_fixture import ODD
from meantime.testing.suite import patience

pytestmark = pytest.mark.anyio
SETTINGS = AgentSettings(runner="python")
SESSION: ContextVar[str] = ContextVar("session")


async def slowly() -> None:
    """In steps: a machine that stands still must not end a turn while its check is about to look at it."""
    for _ in range(50):
        await pause_async(0.01, "the agent works")


class Pupil(ScriptedHost):
    """An agent that does what the prompts of the suite ask for."""

    def __init__(self) -> None:
        abilities = SessionAbilities(fork=True, steer=True, history=True)
        super().__init__(self.act, abilities, kept=True)

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        SESSION.set(session)
        return await super().prompt(session, prompt, brief, hearer)

    async def act(self, prompt: Prompt, hearer: Hearer) -> str:
        hearer.alive()
        if prompt.text == "wait":
            await asyncio.Event().wait()
        if prompt.text == "odd":
            hearer.said(ODD)
            return ODD
        if prompt.text == "recall":
            told = [line.text for line in self.sessions[SESSION.get()] if line.role == "user"]
            return " ".join(re.findall(r"say (\w+)", " ".join(told)))
        if prompt.text.startswith("slowly"):
            await slowly()
        return prompt.text.rpartition(" ")[2]


class Lasting(LastingScriptedHost):
    """The same, and its turns go on without us. It does not outlive its process."""

    act = Pupil.act

    def __init__(self) -> None:
        super().__init__(self.act, SessionAbilities(lasting=True, resume=False))

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        SESSION.set(session)
        return await super().prompt(session, prompt, brief, hearer)


@pytest.mark.parametrize("host", [Pupil, Lasting])
@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_scripted_hosts_keep_the_contract(
    check: Check, host: type[Pupil] | type[Lasting], tmp_path: Path
) -> None:
    bench = HostFixture(host, SETTINGS, tmp_path)
    try:
        await check(bench)
    finally:
        await bench.host.close()


async def answer(texts: list[str]) -> str:
    """What the prompts of the suite ask for, of an agent that has heard these texts of the user."""
    last = texts[-1]
    if last == "wait":
        await asyncio.Event().wait()
    if last == "odd":
        return ODD
    if last == "recall":
        return " ".join(re.findall(r"say (\w+)", " ".join(texts)))
    if last.startswith("slowly"):
        await slowly()
    return last.rpartition(" ")[2]


async def loop(talk: Conversation) -> str:
    return await answer([line.text for line in talk.messages if line.role == "user"])


async def respond(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    parts = [part for message in messages for part in message.parts]
    yield await answer([str(part.content) for part in parts if isinstance(part, UserPromptPart)])


@pytest.mark.parametrize(
    "agent", [loop, PydanticAgent(FunctionModel(stream_function=respond))], ids=["loop", "pydantic"]
)
@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_agents_in_python(check: Check, agent: Any, tmp_path: Path) -> None:
    def make() -> PythonSessionHost:
        host = PythonSessionHost(SystemClock())
        host.add("agent", agent)
        return host

    bench = HostFixture(make, SETTINGS, tmp_path)
    try:
        await check(bench)
    finally:
        await bench.host.close()


@pytest.mark.breadth
async def test_exercise_session_host_runs_every_check_on_a_fresh_host(tmp_path: Path) -> None:
    made: list[Pupil] = []

    def make() -> Pupil:
        made.append(Pupil())
        return made[-1]

    await exercise_session_host(make, SETTINGS, tmp_path)
    assert len(made) == len(SESSION_HOST_CHECKS) + 1  # one of them restarts its host


class Forgetful(Pupil):
    async def act(self, prompt: Prompt, hearer: Hearer) -> str:
        return "hm" if prompt.text == "recall" else await super().act(prompt, hearer)


class Blank(Pupil):
    async def fork(self, session: str, brief: Brief) -> str:
        return await self.begin(brief)


class Deaf(Pupil):
    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        if prompt.text == "wait":
            patience.PATIENCE = 0.5  # nothing that follows is worth waiting for
        try:
            return await super().prompt(session, prompt, brief, hearer)
        except asyncio.CancelledError:  # the first is not heard; the second comes with the end of the test
            await asyncio.Event().wait()
            raise


class Chatty(Pupil):
    async def steer(self, session: str, text: str) -> bool:
        return True


class Careless(Pupil):
    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        self.sessions.setdefault(session, [])
        return await super().prompt(session, prompt, brief, hearer)


@pytest.mark.breadth
@pytest.mark.parametrize(
    ("host", "check"),
    [
        (Forgetful, "a_session_knows_what_was_said_before"),
        (Blank, "a_fork_knows_what_its_source_knew"),
        (Deaf, "a_stop_ends_the_turn"),
        (Chatty, "where_no_turn_goes_on_nothing_is_steered"),
        (Careless, "an_unknown_session_is_an_error_and_no_new_one"),
    ],
)
async def test_exercise_session_host_names_the_check_that_failed(
    host: type[Pupil], check: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted faults: the suite can fail."""
    monkeypatch.setattr(patience, "PATIENCE", patience.PATIENCE)  # Deaf changes it
    with pytest.raises(AssertionError, match=f"^{check}: "):
        await exercise_session_host(host, SETTINGS, tmp_path)
