"""`q=`: one grammar for lists and streams, and its completion."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from meantime import Call, HttpDoor, Meantime, Shell, Thread
from meantime.testing import FakeClock

from .conftest import over_tcp
from .listening import Listener

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


async def forever() -> None:
    await asyncio.Event().wait()


def fail() -> None:
    raise ValueError("no")


@pytest.fixture
async def works(thread: Thread, mt: Meantime, clock: FakeClock) -> None:
    await (await thread.start(Call(int, "1"), id="old", description="Deploy the page")).wait()
    await clock.advance(3_600)
    await (await thread.start(Call(fail), id="bad", description="Deploy ÜBER all", batch="b1")).wait()
    await (await mt.thread("other").start(Shell("true"), id="cmd", description="say: it", batch="b2")).wait()
    await thread.start(Call(forever), id="busy", description="Wait")


async def found(http: httpx.AsyncClient, q: str, **more: str) -> list[str]:
    answer = await http.get("/v1/tasks", params={"q": q, "format": "rows", **more})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["total"], answer.json()["totalExact"]) == (len(answer.json()["rows"]), True)
    return [row["id"] for row in answer.json()["rows"]]


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("", ["busy", "cmd", "bad", "old"]),
        ("status:failed", ["bad"]),
        ("status:active", ["busy"]),
        ("-status:active,failed", ["cmd", "old"]),
        ("status:ended -status:failed", ["cmd", "old"]),
        ("kind:shell", ["cmd"]),
        ("-kind:shell", ["busy", "bad", "old"]),
        ("agent:call,shell", ["busy", "cmd", "bad", "old"]),
        ("thread:other", ["cmd"]),
        ("-thread:other", ["busy", "bad", "old"]),
        ("thread:other,conv-1 batch:b1,b2", ["cmd", "bad"]),
        ("-batch:b1", ["busy", "cmd", "old"]),
        ("deploy", ["bad", "old"]),
        ("deploy über", ["bad"]),
        ("deploy -page", ["bad"]),
        ('"the page"', ["old"]),
        ('"say: it"', ["cmd"]),
        ("since:10m", ["busy", "cmd", "bad"]),
        ("until:10m", ["old"]),
        ("since:2h until:10m status:completed", ["old"]),
        ("since:2100-01-01", []),
        ("thread:nobody", []),
    ],
)
async def test_a_search_finds_what_fits_all_of_its_terms(
    http: httpx.AsyncClient, works: None, q: str, expected: list[str]
):
    assert await found(http, q) == expected
    tasks = (await http.get("/v1/tasks", params={"q": q})).json()
    assert ([task["id"] for task in tasks["tasks"]], tasks["total"]) == (expected, len(expected))


async def test_a_bad_search_says_what_there_is(http: httpx.AsyncClient):
    for path in ("/v1/tasks", "/v1/events?format=patches"):
        answer = await http.get(
            path, params={"q": "stats:failed", "format": "patches" if "events" in path else "rows"}
        )
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")
        assert answer.json()["error"] == "stats: is not a qualifier."
        assert "Did you mean status:?" in answer.json()["hint"]
        assert "such as status:failed" in answer.json()["hint"]


async def test_pages_of_a_search_go_on(http: httpx.AsyncClient, works: None):
    seen: list[str] = []
    cursor = ""
    for _ in range(9):
        page = (
            await http.get(
                "/v1/tasks",
                params={"q": "-status:running since:2h", "format": "rows", "limit": 1, "cursor": cursor},
            )
        ).json()
        assert page["total"] == 3
        seen += [row["id"] for row in page["rows"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == ["cmd", "bad", "old"]


async def test_the_token_of_a_thread_finds_no_other_by_searching(door: HttpDoor, works: None):
    headers = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_tcp(door.url, headers=headers) as http:
        assert await found(http, "thread:other") == []
        assert await found(http, "-thread:conv-1") == []
        items = (await http.get("/v1/complete", params={"q": "thread:"})).json()["items"]
        assert [one["text"] for one in items] == ["thread:conv-1"]


async def test_a_row_that_no_longer_fits_is_gone_from_its_stream(door: HttpDoor, thread: Thread, works: None):
    async with Listener(door, "/v1/events?format=patches&q=status:running%20wait") as stream:
        assert [row["id"] for row in (await stream.hear()).data["rows"]] == ["busy"]
        await thread.cancel("busy", wait=True)
        while "busy" not in (said := await stream.hear()).data["gone"]:
            assert said.data["rows"] == []


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("", [f"{name}:" for name in ("status", "agent", "kind", "thread", "batch", "since", "until")]),
        ("text -st", ["-status:"]),
        ("status:ca", ["status:cancelling", "status:cancelled"]),
        ("status:failed,com", ["status:failed,completed"]),
        ("kind:sh", ["kind:shell"]),
        ("thread:c", ["thread:conv-1"]),
        ("batch:b", ["batch:b1", "batch:b2"]),
        ("since:7", ["since:7d"]),
        ("nonsense:x", []),
    ],
)
async def test_the_last_word_of_a_search_is_completed(
    http: httpx.AsyncClient, works: None, q: str, expected: list[str]
):
    items = (await http.get("/v1/complete", params={"q": q})).json()["items"]
    assert sorted(one["text"] for one in items) == sorted(expected)


async def test_completions_are_few(http: httpx.AsyncClient, mt: Meantime):
    for number in range(30):
        await mt.thread(f"c{number}").start(Call(int, "1"))
    assert len((await http.get("/v1/complete?q=thread:c")).json()["items"]) == 20
