"""Rule 7 of PROMISES.md: an agent's token sees its own thread; everything else is not found."""

from __future__ import annotations

import json

import httpx
import pytest

from meantime import Call, HttpDoor, Meantime, Thread

from .asking import asking
from .conftest import over_tcp
from .listening import Listener

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("P12", "R13")
async def test_lists_groups_and_numbers_are_the_threads_own(door: HttpDoor, tasks: None):
    async def read(path: str) -> dict[str, object]:
        return json.loads((await asking(door, f"/~{door.thread_token('conv-1')}{path}")).body)

    assert [task["id"] for task in (await read("/v1/tasks"))["tasks"]] == ["mine"]  # type: ignore[index]
    assert (await read("/v1/tasks?thread=other"))["code"] == "not_found"
    assert (await read("/v1/tasks/theirs/logs"))["code"] == "not_found"
    stats = await read("/v1/stats")
    assert (stats["totalTasks"], stats["notices"]) == (1, {})
    assert (await read("/v1/events?task=theirs"))["code"] == "not_found"


@pytest.mark.behaviour("P12")
async def test_not_found_reads_the_same_for_what_is_hidden_and_what_is_not_there(door: HttpDoor, tasks: None):
    path = f"/~{door.thread_token('conv-1')}/v1/tasks/"
    hidden, absent = await asking(door, path + "theirs"), await asking(door, path + "nobody")
    assert hidden.body.replace(b"theirs", b"nobody") == absent.body


@pytest.mark.behaviour("P12")
async def test_the_stream_is_the_threads_own(door: HttpDoor, thread: Thread, mt: Meantime):
    async with Listener(door, f"/~{door.thread_token('conv-1')}/v1/events") as stream:
        assert (await stream.hear()).data["tasks"] == []
        await mt.thread("other").start(Call(int, "1"), id="theirs")
        await thread.start(Call(int, "1"), id="mine")
        assert (await stream.hear()).data["id"] == "mine"


@pytest.mark.behaviour("P12")
async def test_an_agent_names_itself_as_the_parent_and_nobody_of_another_thread(door: HttpDoor, tasks: None):
    """The thread of an agent has the id of its task, and that task lies in the thread that started it."""

    async def start(thread: str, parent: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {door.thread_token(thread)}"}
        async with over_tcp(door.url, headers=headers) as client:
            return await client.post("/v1/tasks", json={"command": ["true"], "parent": parent})

    for thread in ("mine", "conv-1"):
        started = await start(thread, "mine")
        assert started.status_code == 201, started.text
        task = started.json()
        assert (task["parentSessionID"], task["parentTaskID"]) == (thread, "mine")
        assert (await start(thread, "theirs")).status_code == 404
