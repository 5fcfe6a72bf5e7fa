"""Watches over HTTP: a kind of work of POST /v1/tasks. A thread's token watches nothing of another's."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from meantime import HttpDoor, Meantime, Shell, Thread
from meantime.kernel.watches import spec_of

from .conftest import over_tcp

pytestmark = pytest.mark.anyio


async def test_a_watch_is_started_listed_and_told(write: httpx.AsyncClient, thread: Thread):
    server = await thread.start(Shell("echo ERROR one; exec sleep 3600"), id="server")
    body = {"thread": "conv-1", "watch": {"log": "server", "match": "ERROR", "once": True}}
    started = await write.post("/v1/tasks", json=body)
    assert started.status_code == 201, started.text
    id = started.json()["id"]
    found = (await write.get(f"/v1/tasks/{id}/wait?timeout=60")).json()
    assert found["status"] == "completed"
    assert (await thread.output(id)).value == "matched once\nERROR one"
    await server.cancel(wait=True)


@pytest.mark.parametrize(
    ("watch", "words"),
    [
        ({}, "one thing, not 0"),
        ({"log": "server"}, "needs match"),
        ({"port": 1, "url": "http://x"}, "one thing, not 2"),
        ({"port": 1, "match": "(?=x)"}, "not an expression of RE2"),
        ({"port": 1, "every": 0}, "every must be"),
        ({"nonsense": 1}, "nonsense"),
        ({"file": "relative"}, "absolute"),
    ],
)
async def test_a_watch_that_makes_no_sense_is_refused(
    write: httpx.AsyncClient, watch: dict[str, Any], words: str
):
    answer = await write.post("/v1/tasks", json={"watch": watch})
    assert (answer.status_code, words in answer.text) == (400, True), answer.text


async def test_a_token_of_a_thread_watches_nothing_of_another(door: HttpDoor, mt: Meantime, thread: Thread):
    theirs = await mt.thread("other").start(Shell("exec sleep 3600"), id="theirs", batch="build")
    mine = await thread.start(Shell("exec sleep 3600"), id="mine")
    headers = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_tcp(door.url, headers=headers) as client:
        for watch in (
            {"log": "theirs", "match": "x"},
            {"task": "theirs"},
            {"thread": "other"},
            {"batch": "build"},
        ):
            answer = await client.post("/v1/tasks", json={"watch": watch})
            assert answer.status_code == 404, (watch, answer.text)
        answer = await client.post("/v1/tasks", json={"watch": {"log": "mine", "match": "x"}})
        assert answer.status_code == 201, answer.text
        assert answer.json()["parentSessionID"] == "conv-1"
    for task in (theirs, mine):
        await task.cancel(wait=True)


@pytest.mark.parametrize("source", ["log", "task"])
async def test_a_prefix_of_an_own_task_never_means_another_threads_task(
    door: HttpDoor, mt: Meantime, thread: Thread, source: str
):
    """The whole id of their task is the beginning of one of ours."""
    theirs = await mt.thread("other").start(Shell("echo secret; exec sleep 3600"), id="build")
    mine = await thread.start(Shell("echo own; exec sleep 3600"), id="builda")
    headers = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_tcp(door.url, headers=headers) as client:
        answer = await client.post("/v1/tasks", json={"watch": {source: "build", "match": "."}})
    assert answer.status_code == 201, answer.text
    watch = await thread.get(answer.json()["id"])
    assert spec_of(watch).of == "builda"
    for task in (watch.id, mine.id):
        await thread.cancel(task)
    await theirs.cancel(wait=True)
