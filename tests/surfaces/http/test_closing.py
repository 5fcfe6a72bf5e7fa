"""A graceful stop: seed 001's "Server stops gracefully on process exit"."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import HttpDoor, Meantime
from meantime.ports.store import Query
from meantime.ports.tasks import Page
from meantime.testing import FakeClock

from .conftest import OpenDoor, over_tcp
from .listening import Listener

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("H6")
@pytest.mark.scenario("001", "Server stops gracefully on process exit")
async def test_answers_under_way_are_finished(
    open_door: OpenDoor, mt: Meantime, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    door = await open_door()
    asked, go = asyncio.Event(), asyncio.Event()
    page = mt._runtime.page

    async def slow(query: Query) -> Page:
        asked.set()
        await go.wait()
        return await page(query)

    monkeypatch.setattr(mt._runtime, "page", slow)
    async with over_tcp(door.url) as http:
        request = asyncio.create_task(http.get("/v1/health"))
        await asked.wait()
        closing = asyncio.create_task(door.close())
        await clock.until(lambda: door._serving._server.should_exit)
        go.set()
        assert (await request).status_code == 200
        await closing
        with pytest.raises(httpx.ConnectError):
            await http.get("/v1/health")


@pytest.mark.breadth
@pytest.mark.behaviour("H6")
async def test_closing_meantime_closes_its_doors(tmp_path: Path):
    mt = await Meantime.open(tmp_path / "work.db")
    door = await mt.serve(port=0)
    async with Listener(door) as stream:
        await stream.hear()
        await mt.close()
        with pytest.raises(EOFError):
            await stream.hear()
    assert (door.closed, door.port) == (True, 0)
    assert not (tmp_path / "work.db.http" / "server.json").exists()
    await door.close()  # twice is harmless


@pytest.mark.behaviour("H6")
async def test_signals_stay_with_the_program(door: HttpDoor):
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    assert all("uvicorn" not in repr(handler) for handler in handlers.values())


@pytest.mark.breadth
@pytest.mark.behaviour("H6")
@pytest.mark.scenario("001", "Server stops gracefully on process exit")
async def test_an_interrupt_leaves_no_server_json(tmp_path: Path):
    """The program is interrupted, its blocks are left, and the door is closed with them."""
    code = (
        "import asyncio\nfrom meantime import Meantime\n"
        "async def main():\n"
        "    async with Meantime.open('work.db') as mt, mt.serve(port=0):\n"
        "        print('open', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())"
    )
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert program.stdout is not None
    assert await program.stdout.readline() == b"open\n"
    assert (tmp_path / "work.db.http" / "server.json").exists()
    program.send_signal(signal.SIGINT)
    await asyncio.wait_for(program.wait(), LIMIT)
    assert os.listdir(tmp_path / "work.db.http") == ["token"]
