"""An agent asks before it acts: a rule answers, or a person, or nobody. The agent is a scripted stand-in."""

from __future__ import annotations

import pytest

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Completed, Failed, Lost
from meantime.kernel.questions import ONCE, TASK

from .conftest import Peer, asked, ended, steps

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
CALL = {"call": "shell", "input": {"command": "ls"}, "ask": True, "output": "a file"}


async def test_a_person_allows_it_with_one_of_the_agents_own_options(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps(CALL, {"say": "done"}))
        task = await asked(handle)
        assert task.status is Status.WAITING
        question = task.question
        assert question is not None
        assert question.subject == "shell"
        assert question.arguments == {"command": "ls"}
        offered = [(choice.id, choice.allows, choice.scope) for choice in question.choices]
        assert offered == [
            ("o-allow_once", True, ONCE),
            ("o-allow_always", True, TASK),
            ("o-reject_once", False, ONCE),
        ]
        await thread.answer(handle, "yes", by="user")
        task = await ended(thread, handle)
    assert isinstance(task.outcome, Completed)
    assert peer.lines("outcomes") == ["o-allow_once"]


async def test_always_is_for_this_task_and_never_reaches_the_agents_own_configuration(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps(CALL, CALL, {"say": "done"}))
        await asked(handle)
        await thread.answer(handle, "always", by="user")
        task = await ended(thread, handle)
    assert isinstance(task.outcome, Completed)
    assert peer.lines("outcomes") == ["o-allow_once", "o-allow_once"]  # the second one was not asked


async def test_an_agent_that_goes_on_after_a_refusal_completes(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps(CALL, {"say": "without it"}))
        await asked(handle)
        await thread.answer(handle, "no", by="user")
        task = await ended(thread, handle)
        lines = await thread.lines(handle)
    assert isinstance(task.outcome, Completed)
    assert task.outcome.result == "without it"
    assert [line.failed for line in lines if line.role == "tool"] == [True]
    assert peer.lines("outcomes") == ["o-reject_once"]


@pytest.mark.parametrize("reason", ["end_turn", "cancelled"])
async def test_an_agent_that_stops_at_a_refusal_has_failed(peer: Peer, reason: str):
    """OpenCode ends its turn without a word, codex says that it was cancelled."""
    async with peer.employed(deny=("shell",)) as thread:
        task = await ended(thread, await thread.start(steps({"say": "I try"}, CALL, {"stop": reason})))
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "not_allowed"
    assert "shell was not allowed" in task.outcome.message


async def test_rules_answer_by_the_tools_name(peer: Peer):
    write = {**CALL, "call": "write"}
    async with peer.employed(allow=("sh*",), otherwise="deny") as thread:
        task = await ended(thread, await thread.start(steps(CALL, write, {"say": "done"})))
    assert isinstance(task.outcome, Completed)
    assert peer.lines("outcomes") == ["o-allow_once", "o-reject_once"]


async def test_what_nobody_answers_is_refused_and_the_agent_goes_on(peer: Peer):
    async with peer.employed(answer_within=0.2) as thread:
        task = await ended(thread, await thread.start(steps(CALL, {"say": "went on"})))
    assert isinstance(task.outcome, Completed)
    assert peer.lines("outcomes") == ["o-reject_once"]


async def test_an_agent_that_offers_only_always_is_answered_with_it(peer: Peer):
    only = {**CALL, "ask": ["allow_always", "reject_once"]}
    async with peer.employed(otherwise="allow") as thread:
        await ended(thread, await thread.start(steps(only, {"say": "done"})))
    assert peer.lines("outcomes") == ["o-allow_always"]


async def test_an_agent_that_asks_and_dies_is_lost_and_its_question_withdrawn(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps({**CALL, "die": True}))
        task = await ended(thread, handle)
        assert isinstance(task.outcome, Lost)
        assert (await handle.get()).question is None


async def test_a_cancel_withdraws_the_question_and_tells_the_agent(peer: Peer):
    async with peer.employed() as thread:
        handle = await thread.start(steps(CALL, {"wait": "never"}))
        await asked(handle)
        await thread.cancel(handle, by="user", wait=True)
        task = await handle.get()
        assert task.status is Status.CANCELLED
        assert task.question is None
    assert await peer.until("outcomes") == ["cancelled"]
