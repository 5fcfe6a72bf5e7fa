"""The runtime on either store, and a process that is connected to one, pass every check of the verbs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from meantime import Meantime
from meantime.ports.tasks import Tasks
from meantime.testing import TASKS_CHECKS, exercise_tasks
from meantime.testing.tasks import Check

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _memory(folder: Path) -> AsyncIterator[Tasks]:
    async with Meantime.open(":memory:") as mt:
        yield mt._runtime


@asynccontextmanager
async def _sqlite(folder: Path) -> AsyncIterator[Tasks]:
    async with Meantime.open(folder / "work.db", durability="fast") as mt:
        yield mt._runtime


@asynccontextmanager
async def _linked(folder: Path) -> AsyncIterator[Tasks]:
    """Over a socket, to an owner that is here as well."""
    path = folder / "link"
    async with Meantime.open(folder / "work.db", durability="fast", link=path), Meantime.connect(path) as mt:
        yield mt._runtime


MAKERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Tasks]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "linked": _linked,
}


@pytest.mark.parametrize("check", TASKS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("maker", MAKERS)
async def test_the_verbs_keep_the_contract(maker: str, check: Check, tmp_path: Path) -> None:
    async with MAKERS[maker](tmp_path) as tasks:
        await check(tasks)


async def test_exercise_tasks_runs_every_check_on_a_fresh_ledger(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> AbstractAsyncContextManager[Tasks]:
        made.append(1)
        return _memory(tmp_path)

    await exercise_tasks(make)
    assert len(made) == len(TASKS_CHECKS)


async def test_exercise_tasks_names_the_check_that_failed(tmp_path: Path) -> None:
    @asynccontextmanager
    async def forgetful() -> AsyncIterator[Tasks]:
        async with Meantime.open(":memory:") as mt:
            runtime: Any = mt._runtime

            async def tell_again(*given: Any, **named: Any) -> Any:
                return await type(runtime).close_turn(runtime, given[0], failed=False)

            runtime.ack = tell_again
            yield runtime

    with pytest.raises(AssertionError, match="endings_are_told_in_order_and_once"):
        await exercise_tasks(forgetful)
