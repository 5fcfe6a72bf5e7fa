"""Every lesson starts from a fresh ledger on disk and one conversation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from meantime import Meantime, Thread


@pytest.fixture(params=["embedded", "connected"])
async def mt(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Meantime]:
    """In the process that owns the ledger, and in one that is connected to it: the same."""
    if request.param == "embedded":
        async with Meantime.open(tmp_path / "work.db") as mt:
            yield mt
        return
    owner = Meantime.open(tmp_path / "work.db", link=tmp_path / "link")
    async with owner, Meantime.connect(tmp_path / "link") as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
