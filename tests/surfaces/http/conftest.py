"""A door on a real port, with a clock that stands still, and a client of the same user."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import Call, HttpDoor, Meantime, Thread
from meantime.app.ledger_owner import LedgerOwner
from meantime.surfaces.http.http_settings import HttpSettings
from meantime.testing import FakeClock

# Each client would otherwise read the certificates of the whole world, which takes longer than most tests.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

OpenDoor = Callable[..., Awaitable[HttpDoor]]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MEANTIME_API", "ASYNCAGENTS_API"):
        monkeypatch.delenv(f"{name}_PORT", raising=False)
        monkeypatch.delenv(f"{name}_ENABLED", raising=False)


@pytest.fixture
def place() -> str:
    """Most of these tests are about the wire; both stores pass the same checks elsewhere."""
    return "memory"


@pytest.fixture
async def open_door(mt: Meantime, clock: FakeClock, tmp_path: Path) -> AsyncIterator[OpenDoor]:
    """Opens doors with settings of the test's own; `batch=0` publishes without a pause."""
    async with AsyncExitStack() as doors:

        async def opened(**settings: Any) -> HttpDoor:
            given = {"port": 0, "batch": 0.0, "folder": tmp_path / "http", "version": "0.1.0", **settings}
            door = HttpDoor(mt._runtime, LedgerOwner(mt._owner.about), HttpSettings(**given), clock)
            return await doors.enter_async_context(door)

        yield opened


@pytest.fixture
async def door(open_door: OpenDoor) -> HttpDoor:
    return await open_door()


@pytest.fixture
async def http(door: HttpDoor) -> AsyncIterator[httpx.AsyncClient]:
    """What curl is: a program of the same user, without a token."""
    async with over_tcp(door.url) as client:
        yield client


@pytest.fixture
async def tasks(thread: Thread, mt: Meantime) -> None:
    """One of this thread, one of another."""
    await (await thread.start(Call(int, "1"), id="mine", batch="b-1")).wait()
    await (await mt.thread("other").start(Call(int, "2"), id="theirs", batch="b-2")).wait()


@pytest.fixture
async def write(door: HttpDoor) -> AsyncIterator[httpx.AsyncClient]:
    """A program that was given the token."""
    async with over_tcp(door.url, headers={"Authorization": f"Bearer {door.token}"}) as client:
        yield client


@pytest.fixture
def places() -> Iterator[Path]:
    """A folder with a short name: a socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="mt") as folder:
        yield Path(folder)


def over_tcp(url: str, **more: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, trust_env=False, verify=NO_TLS, timeout=LIMIT, **more)


def over_socket(path: Path, **more: Any) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(path), verify=NO_TLS)
    return httpx.AsyncClient(base_url="http://meantime", transport=transport, timeout=LIMIT, **more)
