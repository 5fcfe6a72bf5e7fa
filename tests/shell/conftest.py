"""Commands are real here, and so is the time they take: nothing waits longer than it must."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Meantime, Settings, Thread

from .owners import Owner
from .saying import lives

QUICK = Settings(stop_grace=0.5, stop_deadline=LIMIT, on_close="stop")


@pytest.fixture
async def mt(ledger: str) -> AsyncIterator[Meantime]:
    async with Meantime.open(ledger, settings=QUICK) as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")


@pytest.fixture
def alive(tmp_path: Path) -> object:
    """Which of the processes that wrote their pid into a file of this folder still live."""

    def living(name: str = "pids") -> list[int]:
        pids = [int(pid) for pid in (tmp_path / name).read_text().split()]
        return [pid for pid in pids if lives(pid)]

    return living


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def owner(path: Path) -> Iterator[Owner]:
    """Another process that owns the ledger, until it is killed."""
    owner = Owner(path)
    yield owner
    owner.kill()
