"""One action on many tasks: the number is agreed on first, and every refusal is named."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from meantime import Call, HttpDoor, Meantime, Thread
from meantime.surfaces.http import bulk_writes

from .conftest import over_tcp

pytestmark = [pytest.mark.anyio, pytest.mark.embedded]


async def never() -> None:
    await asyncio.Event().wait()


async def bulk(write: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await write.post("/v1/tasks/bulk", json=body)


async def test_everything_that_matches_is_cancelled_if_the_number_is_the_agreed_one(
    write: httpx.AsyncClient, thread: Thread, mt: Meantime
):
    for at in range(3):
        await thread.start(Call(never), id=f"t-{at}")
    await mt.thread("other").start(Call(never), id="other")
    q = "thread:conv-1 status:running"
    refused = await bulk(write, action="cancel", q=q, expect=2)
    assert (refused.status_code, refused.json()["code"], refused.json()["count"]) == (409, "count_changed", 3)
    assert (await mt.get("t-0")).status == "running"
    done = await bulk(write, action="cancel", q=q, expect=3)
    assert done.json() == {"matched": 3, "done": 3, "refused": [], "refusedCount": 0}
    assert (await mt.get("other")).status == "running"


async def test_what_is_refused_is_named_with_its_reason(write: httpx.AsyncClient, thread: Thread):
    await (await thread.start(Call(int, "1"), id="done")).wait()
    await thread.start(Call(never), id="busy")
    answer = (await bulk(write, action="purge", ids=["done", "busy", "nobody", "done"], expect=3)).json()
    assert (answer["matched"], answer["done"], answer["refusedCount"]) == (3, 1, 2)
    codes = {one["id"]: one["code"] for one in answer["refused"]}
    assert codes == {"busy": "still_active", "nobody": "not_found"}
    again = (await bulk(write, action="cancel", ids=["busy"], expect=1)).json()
    assert again["done"] == 1


async def test_cleared_tasks_are_hidden_and_not_cleared_twice(write: httpx.AsyncClient, thread: Thread):
    await (await thread.start(Call(int, "1"), id="done")).wait()
    assert (await bulk(write, action="clear", ids=["done"], expect=1)).json()["done"] == 1
    again = (await bulk(write, action="clear", ids=["done"], expect=1)).json()
    assert (again["done"], again["refused"][0]["reason"]) == (0, "It is cleared already.")


@pytest.mark.parametrize(
    "body",
    [
        {"action": "cancel", "expect": 1},
        {"action": "cancel", "expect": 1, "ids": ["a"], "q": "status:failed"},
        {"action": "burn", "expect": 1, "ids": ["a"]},
        {"action": "cancel", "expect": 1, "q": "colour:red"},
        {"action": "cancel", "expect": 1, "q": "x" * 1_001},
        {"action": "cancel", "expect": 1_001, "ids": [str(at) for at in range(1_001)]},
    ],
)
async def test_a_bad_request_does_nothing(write: httpx.AsyncClient, body: dict[str, Any]):
    assert (await bulk(write, **body)).status_code == 400


async def test_more_than_the_most_is_refused(
    write: httpx.AsyncClient, thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bulk_writes, "MOST_TASKS", 2)
    for at in range(3):
        await (await thread.start(Call(int, "1"), id=f"t-{at}")).wait()
    answer = await bulk(write, action="clear", q="thread:conv-1", expect=3)
    assert (answer.status_code, "More than 2 tasks" in answer.json()["error"]) == (400, True)


async def test_the_token_of_a_thread_reaches_its_own_tasks_and_deletes_nothing(
    door: HttpDoor, thread: Thread, mt: Meantime
):
    await (await thread.start(Call(int, "1"), id="mine")).wait()
    await (await mt.thread("other").start(Call(int, "1"), id="theirs")).wait()
    headers = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_tcp(door.url, headers=headers) as bound:
        answer = (await bulk(bound, action="clear", ids=["mine", "theirs"], expect=2)).json()
        assert (answer["done"], answer["refused"][0]["id"]) == (1, "theirs")
        assert (await bulk(bound, action="purge", ids=["mine"], expect=1)).status_code == 403
