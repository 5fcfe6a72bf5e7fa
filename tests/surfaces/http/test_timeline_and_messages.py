"""The course of an agent's task over HTTP: its timeline, its messages, and the first of two answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Meantime, Thread
from meantime.kernel.lines import Kind, Line, PlacedLine
from meantime.kernel.questions import PERMISSION, Question
from meantime.ports.session import AgentSettings, Hearer, Prompt
from meantime.runners.agent.agent_run import HostedAgent
from meantime.surfaces.http.timeline_reads import TEXT, paired
from meantime.testing.scripted_host import ScriptedHost

from .conftest import over_tcp

pytestmark = pytest.mark.anyio
LONG = "x" * (TEXT + 5)


def call(id: str, tool: str, **arguments: str) -> Line:
    return Line(role="assistant", kind=Kind.CALL, tool=tool, call=id, arguments=arguments)


def result(id: str, text: str, *, failed: bool = False) -> Line:
    return Line(role="tool", kind=Kind.RESULT, tool="", call=id, text=text, failed=failed)


class World:
    """An agent that looks around, asks, and waits for the test between its steps."""

    def __init__(self) -> None:
        self.looked, self.goes_on = asyncio.Event(), asyncio.Event()
        self.client: httpx.AsyncClient
        self.thread: Thread

    async def turn(self, prompt: Prompt, hearer: Hearer) -> str:
        hearer.line(call("c1", "grep", pattern="refresh"))
        hearer.line(result("c1", "a.py:1\nb.py:2"))
        hearer.line(call("c2", "bash", command="pytest -x"))
        self.looked.set()
        question = Question(id="q-1", text="May I?", kind="permission", choices=PERMISSION, subject="bash")
        reply = await hearer.ask(question)
        hearer.line(result("c2", LONG, failed=True))
        await self.goes_on.wait()
        return f"done, by {reply.by}"

    async def start(self) -> str:
        handle = await self.thread.start(Agent("review", "look"))
        await asyncio.wait_for(self.looked.wait(), LIMIT)

        async def asks() -> bool:
            return (await self.get(f"/v1/tasks/{handle.id}"))["state"] == "waiting"

        await until_async(asks, "the agent asks")
        return handle.id

    async def get(self, path: str, **params: Any) -> dict[str, Any]:
        answer = await self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World()
    settings = AgentSettings(runner="python", answer_within=600)
    agents = {"review": HostedAgent(settings, ScriptedHost(world.turn))}
    async with (
        Meantime.open(tmp_path / "work.db", agents=agents) as mt,
        mt.serve(port=0, folder=tmp_path) as door,
        over_tcp(door.url, headers={"Authorization": f"Bearer {door.token}"}) as client,
    ):
        world.client, world.thread = client, mt.thread("conv-1")
        yield world
        world.goes_on.set()


async def test_a_timeline_shows_turns_calls_and_waiting_and_follows_them(world: World):
    id = await world.start()
    found = await world.get(f"/v1/tasks/{id}/timeline")
    spans = {(span["kind"], span["name"]): span for span in found["spans"]}
    assert spans["tool", "grep"]["detail"] == "refresh"
    assert spans["tool", "grep"]["endMs"] is not None
    assert spans["tool", "grep"]["note"] == "2 lines"
    assert spans["tool", "bash"]["endMs"] is None
    assert spans["tool", "bash"]["parent"] == spans["turn", "Turn 2"]["id"]
    wait = spans["wait", "waiting for permission"]
    assert (wait["detail"], wait["endMs"], wait["parent"]) == ("May I?", None, spans["tool", "bash"]["id"])
    assert set(found["totals"]) == {"modelMs", "toolMs", "waitMs", "queueMs"}
    await world.client.post(f"/v1/tasks/{id}/answer", json={"answer": "allow"})

    async def ended() -> dict[str, Any] | None:
        later = await world.get(f"/v1/tasks/{id}/timeline", after=found["seq"])
        bash = [one for one in later["spans"] if (one["kind"], one["name"]) == ("tool", "bash")]
        return later if bash and bash[0]["endMs"] is not None else None

    later = await until_async(ended, "the call has ended") or {}
    changed = {(span["kind"], span["name"]): span for span in later["spans"]}
    assert changed["tool", "bash"]["error"]
    assert changed["wait", "waiting for permission"]["note"] == "allowed by you"
    assert ("tool", "grep") not in changed  # it did not change since
    assert later["seq"] > found["seq"]


async def test_messages_come_page_by_page_each_call_with_its_result(world: World):
    id = await world.start()
    first = await world.get(f"/v1/tasks/{id}/messages", limit=2)
    assert [(one["role"], one["kind"], one["name"]) for one in first["messages"]] == [
        ("user", "text", None),
        ("assistant", "call", "grep"),
    ]
    assert (first["messages"][1]["result"], first["more"]) == (None, True)  # it is on the next page
    second = await world.get(f"/v1/tasks/{id}/messages", limit=2, after=first["next"])
    again, bash = second["messages"]
    assert (again["id"], again["result"]) == (first["messages"][1]["id"], "a.py:1\nb.py:2")
    assert again["arguments"] == {"pattern": "refresh"}
    assert (bash["name"], bash["detail"], bash["result"]) == ("bash", "pytest -x", None)
    assert not second["more"]
    await world.client.post(f"/v1/tasks/{id}/answer", json={"answer": "allow"})

    async def result() -> dict[str, Any]:
        third = await world.get(f"/v1/tasks/{id}/messages", after=second["next"])
        return next((one for one in third["messages"] if one["id"] == bash["id"]), {})

    ended = await until_async(result, "the call has its result")
    assert (ended["error"], ended["truncated"], len(ended["result"])) == (True, True, TEXT)
    for given in ({"limit": 501}, {"limit": 0}, {"after": -1}):
        assert (await world.client.get(f"/v1/tasks/{id}/messages", params=given)).status_code == 400


def test_a_result_without_its_call_stays_a_message_of_its_own():
    (message,) = paired((), [PlacedLine(7, result("lost", "found", failed=True))])
    assert (message.id, message.kind, message.text, message.error) == ("7", "result", "found", True)


async def test_the_first_of_two_answers_wins_and_the_second_is_told_so(world: World):
    id = await world.start()
    asked = (await world.get(f"/v1/tasks/{id}"))["question"]
    assert asked["deadlineAt"] > asked["askedAt"]
    body = {"answer": "allow: but be careful", "question": asked["id"]}
    answers = await asyncio.gather(
        *(world.client.post(f"/v1/tasks/{id}/answer", json=body) for _ in range(2)),
    )
    first, second = sorted(answers, key=lambda answer: answer.status_code)
    assert (first.status_code, second.status_code) == (200, 409)
    told = second.json()
    assert (told["code"], told["by"], told["answer"]) == ("already_answered", "user", "but be careful")
    assert told["at"] is not None
    other = await world.client.post(f"/v1/tasks/{id}/answer", json={"answer": "x", "question": "q-9"})
    assert (other.status_code, other.json()["code"]) == (409, "not_waiting")


async def test_work_without_a_conversation_has_a_timeline_and_no_messages(world: World):
    answer = await world.client.post("/v1/tasks", json={"command": ["true"], "thread": "conv-1"})
    id = answer.json()["id"]
    await world.client.get(f"/v1/tasks/{id}/wait")
    (span,) = [one for one in (await world.get(f"/v1/tasks/{id}/timeline"))["spans"] if one["kind"] == "tool"]
    assert (span["detail"], span["error"]) == ("true", False)
    assert (await world.get(f"/v1/tasks/{id}/messages"))["messages"] == []
