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


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both stores; what only makes sense on one names it itself."""
    return ":memory:" if request.param == "memory" else str(tmp_path / "work.db")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def agents() -> FakeSessionRunner:
    return FakeSessionRunner()


@pytest.fixture
async def mt(ledger: str, clock: FakeClock, agents: FakeSessionRunner) -> AsyncIterator[Meantime]:
    async with Meantime.open(ledger, clock=clock, runners=[agents]) as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
