"""Against the servers of the SDK itself, over both wires."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Failed, HttpServer, Meantime, Status, StdioServer, Thread, Tool
from outcomes import completed

from .conftest import PATIENT, ended, http_server, seen

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
SERVER = str(Path(__file__).parent / "peers" / "sdk.py")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server([sys.executable, SERVER, "http"]) as url:
        yield url


@pytest.fixture(params=["stdio", "http"])
async def thread(request: pytest.FixtureRequest) -> AsyncIterator[Thread]:
    if request.param == "stdio":
        server = StdioServer(command=[sys.executable, SERVER, "stdio"], start_timeout=LIMIT)
    else:
        server = HttpServer(url=request.getfixturevalue("url"), start_timeout=LIMIT)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        yield mt.thread("a")


async def test_a_result_comes_from_a_server_of_the_sdk(thread: Thread):
    assert completed(await ended(thread, "s/add", a=2, b=3)).result == {"result": 5}


async def test_a_failure_and_wrong_arguments(thread: Thread):
    broken = (await ended(thread, "s/breaks")).outcome
    assert isinstance(broken, Failed)
    assert (broken.code, "breaks" in broken.message) == ("tool_error", True)
    wrong = (await ended(thread, "s/add", a="x")).outcome
    assert isinstance(wrong, Failed)


async def test_progress_of_a_server_is_the_tasks(thread: Thread):
    task = await ended(thread, "s/steps", count=10)
    assert completed(task).result == {"result": "10 steps"}
    assert (task.progress.percent, task.progress.message) == (100.0, "step 10")


async def test_a_cancelled_call_leaves_the_server_usable(thread: Thread):
    handle = await thread.start(Tool("s/forever"))
    await seen(handle, lambda task: task.progress)
    assert (await thread.cancel(handle, wait=True)).task.status is Status.CANCELLED
    assert completed(await ended(thread, "s/add", a=1, b=1)).result == {"result": 2}


async def test_many_at_once(thread: Thread):
    tasks = await asyncio.gather(*(ended(thread, "s/add", a=n, b=0) for n in range(8)))
    assert [completed(task).result["result"] for task in tasks] == list(range(8))
