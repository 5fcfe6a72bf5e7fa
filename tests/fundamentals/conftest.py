"""Every lesson starts from a fresh ledger on disk and one conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from meantime import Meantime, Thread


@pytest.fixture
async def mt(tmp_path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.open(tmp_path / "work.db") as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
