"""What every test shares."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from meantime import Meantime, Thread
from meantime.testing import FakeClock, FakeSessionRunner

# How long an example takes says nothing here: machines are shared and times are noisy.
settings.register_profile("meantime", deadline=None)
settings.load_profile("meantime")


@pytest.fixture
def anyio_backend() -> str:
    """Meantime is written on asyncio."""
    return "asyncio"


@pytest.fixture(params=["memory", "sqlite", "connected"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the ledger is: here, in either store, or with an owner that we are connected to."""
    return request.param


@pytest.fixture
def ledger(place: str, tmp_path: Path) -> str:
    """What only makes sense on one store names it itself."""
    return ":memory:" if place == "memory" else str(tmp_path / "work.db")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner()


@pytest.fixture
async def owner(
    place: str, ledger: str, clock: FakeClock, agents: FakeSessionRunner
) -> AsyncIterator[Meantime]:
    link = f"{ledger}.link" if place == "connected" else None
    async with Meantime.open(ledger, clock=clock, runners=[agents], link=link) as owner:
        yield owner


@pytest.fixture
async def mt(place: str, ledger: str, owner: Meantime) -> AsyncIterator[Meantime]:
    if place != "connected":
        yield owner
        return
    async with Meantime.connect(f"{ledger}.link") as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
