"""Agents on seed 001's wire, from their launch over a resume: one sessionID, and `resumed` until the end."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.waiting import until_async

from meantime import Agent, HttpDoor, Meantime, Thread
from meantime.testing import FakeSessionRunner

from .listening import Listener, Said

pytestmark = pytest.mark.anyio


async def heard_until(stream: Listener, event: str, count: int) -> list[Said]:
    """Everything up to that event, which comes so often."""
    heard: list[Said] = []
    while sum(one.event == event for one in heard) < count:
        heard.append(await stream.hear())
    return heard


@pytest.mark.behaviour("R17", "H7", "H8", "H12")
@pytest.mark.parametrize("session", [None, "s-known"])
async def test_the_session_id_is_the_one_of_the_launch_ever_after(
    door: HttpDoor,
    write: httpx.AsyncClient,
    thread: Thread,
    agents: FakeSessionRunner,
    session: str | None,
):
    """The session where it is known by then, otherwise the task; and both find the task."""
    agents.hold()
    async with Listener(door) as stream:
        await stream.hear()
        if session is None:
            launched = (await write.post("/v1/tasks", json={"agent": "explore", "prompt": "look"})).json()
            id = called = launched["id"]
            assert launched["sessionID"] == id
        else:
            id, called = (await thread.start(Agent("explore", "look"), session=session)).id, session
        await until_async(lambda: id in agents.at_gate, "the agent works, in a session that is known by now")
        agents.release()
        await write.get(f"/v1/tasks/{id}/wait?timeout=600")
        known = session or f"s-{id}"
        answers: list[Any] = [(await write.get(f"/v1/tasks/{ref}")).json() for ref in (id, known, called)]
        answers.append((await write.post(f"/v1/tasks/{known}/resume", json={"prompt": "more"})).json())
        heard = await heard_until(stream, "task.completed", 2)
    answers += (await write.get("/v1/tasks")).json()["tasks"]
    answers += [one.data for one in heard]
    assert heard[0].event == "task.created"
    assert {one["id"] for one in answers} == {id}
    assert {one["sessionID"] for one in answers} == {called}


@pytest.mark.behaviour("R2", "H7", "H11", "H12")
@pytest.mark.scenario("000", "Track resumed status")
@pytest.mark.scenario("001", "Track resumed status")
async def test_a_task_is_resumed_while_it_waits_for_a_slot(
    door: HttpDoor, write: httpx.AsyncClient, mt: Meantime, thread: Thread, agents: FakeSessionRunner
):
    await mt.set_limits(per_kind={"agent": 1})
    await (await thread.start(Agent("explore", "look"), id="again")).wait()
    agents.hold()
    await thread.start(Agent("explore", "look"), id="busy")
    async with Listener(door) as stream:
        await stream.hear()
        answer = (await write.post("/v1/tasks/again/resume", json={"prompt": "more"})).json()
        said = await stream.hear()
        assert (answer["status"], answer["state"]) == ("resumed", "queued")
        assert (said.event, said.data["id"], said.data["status"]) == ("task.updated", "again", "resumed")
        for word, id in (("resumed", "again"), ("running", "busy")):
            page = (await write.get("/v1/tasks", params={"status": word})).json()
            assert ([(one["id"], one["status"]) for one in page["tasks"]], page["total"]) == ([(id, word)], 1)
        stats = (await write.get("/v1/stats")).json()
        assert (stats["byStatus"]["running"], stats["byStatus"]["resumed"], stats["activeTasks"]) == (1, 1, 2)
        agents.release()
        heard = await heard_until(stream, "task.completed", 2)
    words = [one.data["status"] for one in heard if one.data["id"] == "again"]
    assert words == ["resumed"] * (len(words) - 1) + ["completed"]
