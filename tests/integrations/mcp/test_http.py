"""Servers over HTTP: statuses, resets, stalls, forgotten sessions; and the SDK's own server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Failed, HttpServer, Lost, Meantime, Status, Thread, Tool
from outcomes import completed

from .conftest import PATIENT, ended, seen
from .peers.overhttp import HttpPeer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web() -> AsyncIterator[HttpPeer]:
    async with HttpPeer() as peer:
        yield peer


@pytest.fixture
async def mt(web: HttpPeer) -> AsyncIterator[Meantime]:
    server = HttpServer(url=web.url, headers={"Authorization": "Bearer abc"}, start_timeout=LIMIT)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"web": server}) as mt:
        yield mt
        web.gate.set()


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("a")


async def well(thread: Thread) -> bool:
    """The connection still serves others."""
    return completed(await ended(thread, "web/echo", text="well")).result == "well"


async def test_a_call_and_its_headers(thread: Thread, web: HttpPeer):
    assert await well(thread)
    assert {headers["authorization"] for headers in web.headers} == {"Bearer abc"}


async def test_progress_comes_on_the_stream(thread: Thread, web: HttpPeer):
    handle = await thread.start(Tool("web/sse"))
    progress = await seen(handle, lambda task: task.progress)
    assert (progress.percent, progress.message) == (50.0, "half")
    web.gate.set()
    assert await handle.result() == "streamed"


@pytest.mark.parametrize(
    ("tool", "code", "words"),
    [
        ("refused", "http_error", "HTTP 401"),
        ("broken", "http_error", "HTTP 500 Said. oops"),
        ("html", "server_error", "text/html"),
        ("huge", "http_error", "more than 32 MB"),
    ],
)
async def test_a_status_is_that_calls_failure(thread: Thread, tool: str, code: str, words: str):
    outcome = (await ended(thread, f"web/{tool}")).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == code
    assert words in outcome.message
    assert await well(thread)


@pytest.mark.parametrize("tool", ["reset", "half", "cut"])
async def test_a_connection_that_is_cut_in_the_middle_is_lost(thread: Thread, web: HttpPeer, tool: str):
    """Nobody knows whether the tool did its work; nothing is sent twice, and neighbours go on."""
    waiting = await thread.start(Tool("web/sse"))
    await seen(waiting, lambda task: task.progress)
    outcome = (await ended(thread, f"web/{tool}")).outcome
    assert isinstance(outcome, Lost)
    assert "not known" in outcome.reason
    assert web.calls.count(tool) == 1
    web.gate.set()
    assert await waiting.result() == "streamed"


@pytest.mark.parametrize("tool", ["stall", "silent"])
async def test_a_stall_can_be_cancelled_and_timed_out(thread: Thread, web: HttpPeer, tool: str):
    handle = await thread.start(Tool(f"web/{tool}"))
    await until_async(lambda: tool in web.calls, "the server has the call")
    assert (await thread.cancel(handle, wait=True)).task.status is Status.CANCELLED
    handle = await thread.start(Tool(f"web/{tool}"), timeout=0.5)
    (task,) = await thread.wait(handle, timeout=LIMIT)
    assert task.status is Status.TIMED_OUT
    assert await well(thread)


@pytest.mark.parametrize("status", ["401", "503"])
async def test_a_server_that_lets_nobody_in(thread: Thread, web: HttpPeer, status: str):
    web.how = status
    outcome = (await ended(thread, "web/echo")).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, f"HTTP {status}" in outcome.message) == ("server_not_started", True)
    web.how = ""
    assert await well(thread)


async def test_a_server_that_is_not_there():
    server = HttpServer(url="http://127.0.0.1:1/mcp")
    async with Meantime.open(":memory:", settings=PATIENT, servers={"web": server}) as mt:
        outcome = (await ended(mt.thread("a"), "web/echo")).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, "cannot be reached" in outcome.message) == ("server_not_started", True)


async def test_a_server_that_goes_away_and_comes_back(thread: Thread, web: HttpPeer):
    assert await well(thread)
    web.session = "two"  # it has started anew, and knows nobody
    assert await well(thread)
    assert web.calls == ["echo", "echo"]


async def test_a_session_that_is_forgotten_takes_no_running_call_with_it(thread: Thread, web: HttpPeer):
    running = await thread.start(Tool("web/sse"))
    await seen(running, lambda task: task.progress)
    web.session = "two"
    assert await well(thread)
    web.gate.set()
    assert await running.result() == "streamed"


async def test_many_calls_at_once(mt: Meantime, thread: Thread):
    await mt.set_limits(per_thread=50)
    tasks = await asyncio.gather(*(ended(thread, "web/echo", text=str(n)) for n in range(50)))
    assert [completed(task).result for task in tasks] == [str(n) for n in range(50)]
