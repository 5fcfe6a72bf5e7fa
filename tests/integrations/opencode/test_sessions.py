"""OpenCode sessions as workers, on a server that runs: real turns, with a scripted model behind them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import stays_async, until_async

from integrations.agents.installed import OPENCODE, needs
from integrations.agents.model import script
from meantime import Agent, Cancelled, Completed, Failed, Handle, Meantime, OpenCodeHost, Thread
from meantime.integrations.opencode.errors import Away
from meantime.integrations.opencode.wire.api_client import ApiClient
from meantime.kernel.budgets import Budget
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings

from .serving import Running
from .telling import is_told

pytestmark = [
    pytest.mark.agents,
    needs(OPENCODE),
    pytest.mark.xdist_group("opencode-sessions"),
    pytest.mark.anyio,
]


def bash(command: str) -> dict[str, Any]:
    return {"tool": "bash", "arguments": {"command": command, "description": "a test"}}


def waits_for(gate: Path) -> str:
    return f"until [ -e {gate} ]; do sleep 0.02; done"


@pytest.fixture
async def mt(tmp_path: Path, server: Running) -> AsyncIterator[Meantime]:
    at: dict[str, Any] = {"runner": "opencode", "url": server.url, "cwd": str(server.project)}
    agents = {
        "worker": AgentSettings(**at),
        "careful": AgentSettings(**at, options={"permission": {"bash": "ask"}}),
        "nobody": AgentSettings(**at, agent="no-such-agent"),
        "bare": AgentSettings(**at, tools=("read",)),
        "brief": AgentSettings(**at, budget=Budget(turns=1)),
    }
    async with Meantime.open(tmp_path / "work.db", agents=agents) as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")


async def start(thread: Thread, word: str, *steps: dict[str, Any], agent: str = "worker") -> Handle:
    return await thread.start(Agent(agent, f"{word} {script(*steps)}"))


async def test_a_turn_with_a_tool_and_what_is_seen_of_it(server: Running, thread: Thread):
    usage = {"input": 100, "output": 20}
    steps = [{**bash("echo forty-two"), "usage": usage}, {"text": "It is 42.", "usage": usage, "chunks": 3}]
    handle = await start(thread, "launch", *steps)
    task = await handle.wait()
    assert isinstance(task.outcome, Completed), task.outcome
    assert await handle.result() == "It is 42."
    assert task.progress.tool_calls == {"bash": 1}
    assert (task.progress.turns, task.progress.tokens) == (2, 240)
    assert task.progress.cost == pytest.approx(0.24)
    lines = [(line.role, line.kind, line.text.strip()) for line in await thread.lines(handle)]
    assert lines[1:] == [
        ("assistant", Kind.CALL, ""),
        ("tool", Kind.RESULT, "forty-two"),
        ("assistant", Kind.TEXT, "It is 42."),
    ]
    stored = server.http.get(f"/session/{task.session}").json()
    assert stored["metadata"] == {"meantime": {"task": task.id}}


@pytest.mark.behaviour("L16")
async def test_a_resume_goes_on_in_its_session(server: Running, thread: Thread):
    handle = await start(thread, "resume", {"text": "First."})
    first = await handle.wait()
    again = await thread.resume(handle, script({"text": "Second."}))
    task = await again.wait()
    assert (await again.result(), task.session) == ("Second.", first.session)
    assert "First." in server.asked("resume")[-1].text


@pytest.mark.behaviour("L22")
async def test_a_busy_session_is_forked(server: Running, thread: Thread, tmp_path: Path):
    gate = tmp_path / "gate"
    source = await start(thread, "forked", bash(waits_for(gate)), {"text": "The source is done."})
    await until_async(lambda: server.asked("forked"), "the model is asked")
    copy = await thread.fork(source, script({"text": "The copy is done."}))
    assert await copy.result() == "The copy is done."
    assert "forked" in server.asked("forked")[-1].text
    gate.touch()
    assert await source.result() == "The source is done."
    assert (await copy.get()).session != (await source.get()).session


@pytest.mark.behaviour("L26")
async def test_a_provider_that_refuses_for_a_while_ends_nothing(
    server: Running, thread: Thread, tmp_path: Path
):
    steps, later = tmp_path / "steps.json", tmp_path / "later.json"
    steps.write_text(json.dumps([{"error": 429, "retry_after": 1}]))
    later.write_text(json.dumps([{"text": "At last."}]))
    handle = await thread.start(Agent("worker", f"refused %%{steps}%%"))

    async def waits() -> bool:
        task = await handle.get()
        assert not task.ended, task.outcome
        return task.progress is not None and "waits for the provider" in task.progress.phase

    await until_async(waits, "it waits for the provider", handle.get)
    later.replace(steps)
    assert await handle.result() == "At last."
    assert len(server.asked("refused")) >= 2


@pytest.mark.behaviour("L8")
async def test_a_session_can_be_stopped_while_the_provider_refuses(server: Running, thread: Thread):
    """OpenCode's own record of such a turn says neither that it ended nor that it failed."""
    handle = await start(thread, "endless", {"error": 429, "retry_after": 1})
    await until_async(lambda: len(server.asked("endless")) >= 2, "the model is asked again")
    answer = await thread.cancel(handle, wait=True)
    assert isinstance(answer.task.outcome, Cancelled)
    asked = len(server.asked("endless"))
    assert server.idle(answer.task.session or "")
    await stays_async(lambda: len(server.asked("endless")) == asked, "it is asked no more", seconds=1.5)


@pytest.mark.behaviour("L6")
async def test_a_stop_ends_what_the_agent_runs(server: Running, thread: Thread, tmp_path: Path):
    mark = tmp_path / "pid"
    handle = await start(thread, "stopped", bash(f"echo $$ > {mark}; sleep 1000"))
    await until_async(lambda: mark.exists() and mark.read_text().strip(), "its command runs")
    answer = await thread.cancel(handle, wait=True)
    assert isinstance(answer.task.outcome, Cancelled)
    command = Path(f"/proc/{mark.read_text().strip()}")
    await until_async(lambda: not command.exists(), "its command is gone")


@pytest.mark.behaviour("L3")
async def test_a_model_that_fails_is_a_failure(thread: Thread):
    task = await (await start(thread, "broken", {"error": 400})).wait()
    assert isinstance(task.outcome, Failed)
    assert "scripted error 400" in task.outcome.message
    assert task.outcome.code == "model_error"


@pytest.mark.behaviour("L3")
async def test_an_agent_that_is_not_there_is_a_failure(thread: Thread):
    """OpenCode takes such a prompt, says so in an event, and nothing more."""
    task = await (await start(thread, "absent", {"text": "Hello."}, agent="nobody")).wait()
    assert isinstance(task.outcome, Failed)
    assert "no-such-agent" in task.outcome.message


@pytest.mark.behaviour("L28")
async def test_permissions_are_asked_for_and_answered(mt: Meantime, thread: Thread):
    steps = [bash("echo one"), bash("echo two"), {"text": "Done."}]
    handle = await start(thread, "careful", *steps, agent="careful")
    task = await waiting(handle)
    assert task.question.kind == "permission"
    assert task.question.subject == "bash"
    assert "echo one" in task.question.text
    await mt.answer(handle.id, "reject: not that one")
    await waiting(handle, other_than=task.question.id)
    await mt.answer(handle.id, "allow")
    assert await handle.result() == "Done."
    results = [line for line in await thread.lines(handle) if line.kind is Kind.RESULT]
    assert [line.failed for line in results] == [True, False]
    assert "not that one" in results[0].text


@pytest.mark.behaviour("L28")
async def test_an_answer_for_the_task_is_asked_for_once(mt: Meantime, thread: Thread):
    steps = [bash("echo one"), bash("echo two"), {"text": "Done."}]
    handle = await start(thread, "always", *steps, agent="careful")
    await waiting(handle)
    await mt.answer(handle.id, "always")
    assert await handle.result() == "Done."


@pytest.mark.behaviour("L28")
async def test_questions_are_asked_and_answered(server: Running, mt: Meantime, thread: Thread):
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    question = {"question": "Which colour?", "header": "Colour", "options": options}
    step = {"tool": "question", "arguments": {"questions": [question]}}
    handle = await start(thread, "asked", step, {"text": "Blue it is."})
    task = await waiting(handle)
    assert task.question.text == "Which colour?"
    await mt.answer(handle.id, "Blue")
    assert await handle.result() == "Blue it is."
    assert "Blue" in server.asked("asked")[-1].text


async def waiting(handle: Handle, other_than: str = "") -> Any:
    async def asks() -> bool:
        task = await handle.get()
        assert not task.ended, task.outcome
        return task.question is not None and task.question.id != other_than

    await until_async(asks, "it asks", handle.get)
    return await handle.get()


@pytest.mark.behaviour("L17")
async def test_a_session_is_steered_in_the_middle_of_a_turn(server: Running, thread: Thread, tmp_path: Path):
    gate = tmp_path / "gate"
    handle = await start(thread, "steered", bash(waits_for(gate)), {"text": "Heard."})
    await until_async(lambda: server.asked("steered"), "the model is asked")
    assert await thread.send(handle, "by the way") == "steered"
    session = await asyncio.to_thread(_session, server, "steered")
    await server.until_messages(session, lambda found: "by the way" in str(found))
    gate.touch()
    assert await handle.result() == "Heard."
    assert server.asked("steered")[-1].said[-1].text == "by the way"


def _session(server: Running, word: str) -> str:
    sessions = [one["id"] for one in server.http.get("/session").json()]
    return next(id for id in sessions if word in str(server.messages(id)))


@pytest.mark.behaviour("F19")
async def test_an_agent_has_the_tools_that_it_is_given(server: Running, thread: Thread):
    assert await (await start(thread, "tools", {"text": "Hello."}, agent="bare")).result() == "Hello."
    assert server.asked("tools")[-1].tools == ("read",)


@pytest.mark.behaviour("L15")
async def test_a_last_turn_has_no_tools_and_what_follows_it_has_them_again(server: Running, thread: Thread):
    steps = [bash("true"), bash("sleep 1000"), {"text": "Never."}]
    handle = await start(thread, "spends", *steps, agent="brief")
    task = await handle.wait()
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "budget_spent"
    last = next(asked for asked in reversed(server.model.asked) if "Do not call any more tools" in asked.text)
    assert last.tools == ()
    assert task.outcome.final_message == last.answer["text"]
    again = await thread.resume(handle, "spends-more " + script({"text": "With tools."}))
    assert await again.result() == "With tools."
    assert "bash" in server.asked("spends-more")[-1].tools


@pytest.mark.behaviour("H20")
async def test_an_ending_without_any_event_is_found_by_polling(
    server: Running, thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    def deaf(self: ApiClient) -> Any:
        raise Away("no events")

    monkeypatch.setattr(ApiClient, "events", deaf)
    handle = await start(thread, "deaf", bash("echo forty-two"), {"text": "Done."})
    assert await handle.result() == "Done."
    assert (await handle.get()).progress.tool_calls == {"bash": 1}


@pytest.mark.behaviour("N2")
async def test_four_subagents_of_one_turn_are_all_told_once(server: Running, mt: Meantime):
    """The parent is a session of the same server, which is told and woken."""
    parent = server.session("parent " + script({"text": "They run."}))
    thread = mt.thread(parent)
    mt.attach(parent, OpenCodeHost(server.url, parent))
    handles = await asyncio.gather(
        *(start(thread, f"child-{n}", {"text": f"Child {n}.", "delay": 0.2}) for n in range(4))
    )
    await thread.wait(*handles)
    ids = [notice.id for notice in await mt.notices("unread", "leased", "told")]
    await until_async(lambda: is_told(mt), "everything is told", mt.notices)
    await server.until_idle(parent)
    assert sorted(ids) == sorted(f"{handle.id}.1" for handle in handles)
    assert server.told("parent") == ids
    assert {f"Child {n}." for n in range(4)} == {await handle.result() for handle in handles}
