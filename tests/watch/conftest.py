"""Watches are real here: real commands, files, servers and processes. Each match is told by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Meantime, Thread
from meantime.runners.watch import file_threads, network_states, process_states

from .told import EACH


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What answers late is a machine that is busy, unless a test says otherwise."""
    for module, name in (
        (network_states, "LONGEST"),
        (process_states, "LONGEST"),
        (file_threads, "PATIENCE"),
    ):
        monkeypatch.setattr(module, name, LIMIT)


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
