"""Every store passes every check of the public conformance suite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from meantime.kernel.change import submit
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Run, Task, Work
from meantime.ports.store import Store
from meantime.stores.memory import MemoryStore
from meantime.testing.store import STORE_CHECKS, Check, exercise_store

pytestmark = pytest.mark.anyio


def _memory(folder: Path) -> Store:
    return MemoryStore()


def _sqlite(folder: Path, durability: str) -> Store:
    module = pytest.importorskip("meantime.stores.sqlite.store", exc_type=ImportError)
    return module.SqliteStore(folder / "ledger.db", durability=durability)


MAKERS: dict[str, Callable[[Path], Store]] = {
    "memory": _memory,
    "sqlite-full": lambda folder: _sqlite(folder, "full"),
    "sqlite-fast": lambda folder: _sqlite(folder, "fast"),
}


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", MAKERS)
async def test_every_store_keeps_the_contract(kind: str, check: Check, tmp_path: Path) -> None:
    store = MAKERS[kind](tmp_path)
    await store.open()
    try:
        await check(store)
    finally:
        await store.close()


async def test_exercise_store_runs_every_check_on_a_fresh_store() -> None:
    made: list[Store] = []

    def make() -> Store:
        made.append(MemoryStore())
        return made[-1]

    await exercise_store(make)
    assert len(made) == len(STORE_CHECKS)


async def test_exercise_store_names_the_check_that_failed() -> None:
    class Forgetful(MemoryStore):
        async def load(self, id: str) -> Task | None:
            return None

    with pytest.raises(AssertionError, match="a_task_comes_back_as_it_was_written: the task: None"):
        await exercise_store(Forgetful)


async def test_memory_store_forgets_at_close() -> None:
    store = MemoryStore()
    await store.open()
    task = Task(id="t_a", thread="a", work=Work("call"), status=Status.QUEUED, run=Run())
    await store.commit(submit(task))
    path = await store.spill(b"secret")
    assert os.stat(os.path.dirname(path)).st_mode & 0o077 == 0
    await store.close()
    await store.open()
    assert await store.load("t_a") is None
    assert not os.path.exists(os.path.dirname(path))
    with pytest.raises(FileNotFoundError):
        await store.unspill(path)


async def test_memory_store_only_reads_files_that_it_wrote(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("not ours")
    with pytest.raises(FileNotFoundError):
        await MemoryStore().unspill(str(other))
