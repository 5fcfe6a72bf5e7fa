"""Watches are real here: real commands, files, servers and processes. Each match is told by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from meantime import Meantime, Thread

from .told import EACH


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """On disk: one that is in memory differs only in what a close leaves."""
    return str(tmp_path / "work.db")


@pytest.fixture
async def mt(ledger: str) -> AsyncIterator[Meantime]:
    async with Meantime.open(ledger, settings=EACH) as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")
