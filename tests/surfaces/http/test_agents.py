"""Agents at the HTTP door: starting, asking and answering, forking, sending, and what was said."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT, until_async

from meantime import HttpDoor, Meantime
from meantime.kernel.lines import Kind, Line
from meantime.kernel.questions import PERMISSION, Question
from meantime.ports.session import AgentSettings, Hearer, Prompt
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing.scripted_host import ScriptedHost

from .conftest import over_tcp

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


async def turn(prompt: Prompt, hearer: Hearer) -> str:
    if "may I" in prompt.text:
        question = Question(
            id="q-1", text="May I run it?", kind="permission", choices=PERMISSION, subject="bash"
        )
        reply = await hearer.ask(question)
        return f"allowed: {reply.allows}, {reply.scope}, by {reply.by}"
    hearer.line(Line(role="assistant", kind=Kind.CALL, tool="grep", arguments={"for": "x"}, call="c1"))
    hearer.line(Line(role="tool", kind=Kind.RESULT, tool="grep", text="x.py:1", call="c1"))
    hearer.spent(turns=2, tokens=30, cost=0.5)
    return f"done: {prompt.text.splitlines()[-1]}"


class World:
    def __init__(self, meantime: Meantime, door: HttpDoor, client: httpx.AsyncClient) -> None:
        self.meantime, self.door, self.client = meantime, door, client

    async def start(self, prompt: str, **more: object) -> dict[str, Any]:
        answer = await self.client.post("/v1/tasks", json={"agent": "explore", "prompt": prompt, **more})
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def waiting(self, id: object) -> dict[str, Any]:
        async def found() -> dict[str, Any]:
            task = (await self.client.get(f"/v1/tasks/{id}")).json()
            return task if task["state"] == "waiting" else {}

        return await until_async(found, "the task waits for an answer")

    async def ended(self, id: object) -> dict[str, Any]:
        await self.meantime.thread("default").wait(str(id), timeout=LIMIT)
        return (await self.client.get(f"/v1/tasks/{id}")).json()


@pytest.fixture
async def world(tmp_path):
    agents = {"explore": HostedAgent(AgentSettings(runner="python", description="Looks"), ScriptedHost(turn))}
    async with (
        Meantime.open(tmp_path / "work.db", agents=agents) as mt,
        mt.serve(port=0, folder=tmp_path) as door,
        over_tcp(door.url, headers={"Authorization": f"Bearer {door.token}"}) as client,
    ):
        yield World(mt, door, client)


@pytest.mark.behaviour("F1")
async def test_an_agent_is_started_by_its_name_and_an_unknown_one_is_refused(world: World):
    task = await world.start("look", description="Look around")
    assert (task["agent"], task["description"]) == ("explore", "Look around")
    refused = await world.client.post("/v1/tasks", json={"agent": "explorer", "prompt": "look"})
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_agent")
    assert "explore" in refused.json()["hint"]
    assert (await world.client.get("/v1/info")).json()["agents"] == [
        {"name": "explore", "runner": "python", "description": "Looks"}
    ]


@pytest.mark.behaviour("L28")
async def test_a_question_is_shown_and_a_person_answers_it(world: World):
    task = await world.start("may I?")
    asked = (await world.waiting(task["id"]))["question"]
    assert (asked["text"], asked["kind"], asked["subject"]) == ("May I run it?", "permission", "bash")
    assert [choice["id"] for choice in asked["choices"]] == ["allow", "always", "reject"]
    path = f"/v1/tasks/{task['id']}/answer"
    wrong = await world.client.post(path, json={"answer": "perhaps"})
    assert (wrong.status_code, "allow, always, reject" in wrong.json()["hint"]) == (400, True)
    told = (await world.client.post(path, json={"answer": "yes", "scope": "task"})).json()
    assert (told["state"], told["question"]) == ("running", None)
    assert (await world.ended(task["id"]))["result"] == "allowed: True, task, by user"
    late = await world.client.post(path, json={"answer": "yes"})
    assert (late.status_code, late.json()["code"]) == (409, "not_waiting")


async def test_a_task_names_the_rules_of_its_agent(world: World):
    task = await world.start("may I?")
    found = (await world.waiting(task["id"]))["rules"]
    assert found == {"allow": [], "deny": [], "otherwise": "ask", "answerWithinMs": 900_000}
    command = (await world.client.post("/v1/tasks", json={"command": "true"})).json()["id"]
    assert (await world.ended(command))["rules"] is None


@pytest.mark.behaviour("L28")
async def test_the_token_of_a_thread_may_refuse_a_permission_and_not_give_it(world: World):
    task = await world.start("may I?")
    await world.waiting(task["id"])
    agent = {"Authorization": f"Bearer {world.door.thread_token('default')}"}
    path = f"/v1/tasks/{task['id']}/answer"
    given = await world.client.post(path, json={"answer": "allow"}, headers=agent)
    assert (given.status_code, given.json()["code"]) == (409, "needs_a_person")
    assert (await world.client.post(path, json={"answer": "reject: no"}, headers=agent)).status_code == 200
    assert (await world.ended(task["id"]))["result"] == "allowed: False, once, by agent"


@pytest.mark.behaviour("L22")
async def test_a_task_is_forked_and_says_so(world: World):
    first = await world.start("look")
    await world.ended(first["id"])
    answer = await world.client.post(f"/v1/tasks/{first['id']}/fork", json={"prompt": "look again"})
    assert answer.status_code == 201
    fork = await world.ended(answer.json()["id"])
    assert (fork["isForked"], fork["result"]) == (True, "done: look again")
    by_start = await world.start("and again", forkOf=first["id"])
    assert (await world.ended(by_start["id"]))["isForked"]
    blank = await world.client.post("/v1/tasks", json={"agent": "explore", "prompt": "x", "fork": True})
    assert (blank.status_code, blank.json()["code"]) == (400, "nothing_to_fork")


@pytest.mark.parametrize("told", [False, True])
async def test_of_a_fork_is_told_who_is_told_of_its_source(world: World, told: bool):
    """What a person at a shell forks leaves no unread notice, as what they run leaves none."""
    first = await world.start("look", notify=told)
    await world.ended(first["id"])
    answer = await world.client.post(f"/v1/tasks/{first['id']}/fork", json={"prompt": "look again"})
    await world.ended(answer.json()["id"])
    unread = (await world.client.get("/v1/notices?thread=default")).json()["notices"]
    assert len(unread) == (2 if told else 0)


@pytest.mark.behaviour("H9", "I6")
async def test_what_was_said_is_the_log_and_can_be_filtered(world: World):
    task = await world.start("look")
    ended = await world.ended(task["id"])
    assert (ended["progress"]["turns"], ended["progress"]["tokens"], ended["progress"]["cost"]) == (
        2,
        30,
        0.5,
    )
    logs = (await world.client.get(f"/v1/tasks/{task['id']}/logs")).json()
    said = [(line["role"], line["type"], line["text"]) for line in logs if line["type"] != "progress"]
    assert said == [
        ("user", "text", "look"), ("assistant", "call", ""), ("tool", "result", "x.py:1"),
        ("assistant", "text", "done: look"),
    ]  # fmt: skip
    calls = (await world.client.get(f"/v1/tasks/{task['id']}/logs?type=call")).json()
    assert [line["name"] for line in calls if line["type"] == "call"] == ["grep"]
    text = (await world.client.get(f"/v1/tasks/{task['id']}/output?format=raw")).text
    assert "→ grep" in text


@pytest.mark.behaviour("L16")
async def test_an_ended_task_is_resumed_with_all_it_knows(world: World):
    task = await world.start("look")
    await world.ended(task["id"])
    again = await world.client.post(f"/v1/tasks/{task['id']}/resume", json={"prompt": "more"})
    assert again.status_code == 201
    ended = await world.ended(task["id"])
    assert (ended["resumeCount"], ended["result"]) == (1, "done: more")
    sent = await world.client.post(f"/v1/tasks/{task['id']}/send", json={"data": "hello"})
    assert (sent.status_code, sent.json()["code"]) == (409, "ended")
