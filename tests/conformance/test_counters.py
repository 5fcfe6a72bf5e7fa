"""The counters say what counting every row would say, whatever was done to the rows."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from meantime import Agent, Call, Meantime, NotFound, Settings
from meantime.kernel.limits import Limits, Retention
from meantime.ports.store import Query
from meantime.testing import FakeSessionRunner
from runtimes import runtime_of

pytestmark = pytest.mark.anyio
TASKS = """SELECT status, run > 1, coalesce(agent, ''), hidden, count(*), count(duration),
  round(total(duration), 6) FROM tasks
WHERE status IN ('completed', 'failed', 'cancelled', 'timed_out', 'lost') GROUP BY 1, 2, 3, 4"""
COUNTED = """SELECT status, resumed, agent, hidden, tasks, timed, round(seconds, 6) FROM ended_counts
WHERE tasks != 0 ORDER BY 1, 2, 3, 4"""
NOTICES = "SELECT state, count(*) FROM notices WHERE state IN ('told', 'muted') GROUP BY state ORDER BY state"
SETTLED = "SELECT state, notices FROM settled_counts WHERE notices != 0 ORDER BY state"


def check(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute(COUNTED).fetchall() == db.execute(TASKS).fetchall()
        assert db.execute(SETTLED).fetchall() == db.execute(NOTICES).fetchall()


async def hold() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("seed", range(4))
async def test_counters_agree_with_the_rows(tmp_path: Path, seed: int):
    rng, path = random.Random(seed), tmp_path / "work.db"
    settings = Settings(limits=Limits(-1, -1), retention=Retention(history_tasks=30))
    async with Meantime.open(path, settings=settings, runners=[FakeSessionRunner()]) as mt:
        store = runtime_of(mt).store
        thread = mt.thread("a")
        ids: list[str] = []

        async def ended(work: Any, **options: Any) -> None:
            handle = await thread.start(work, **options)
            await handle.wait()
            ids.append(handle.id)

        async def cancelled() -> None:
            handle = await thread.start(Call(hold))
            await handle.cancel(wait=True)
            ids.append(handle.id)

        async def turn() -> None:
            async with thread.turn(limit=rng.randint(1, 9)) as one:
                if one.notices:
                    await one.ack(*[notice.id for notice in one.notices[: rng.randint(1, 9)]])

        async def resumed() -> None:
            for task in await thread.list("completed", history=True):
                if task.work.kind == "agent":
                    await (await thread.resume(task.id, "again")).wait()
                    return

        async def purged() -> None:
            with suppress(NotFound):  # it was forgotten
                await mt.purge(ids.pop(rng.randrange(len(ids))))

        async def cleared() -> None:
            with suppress(NotFound):
                await thread.clear(rng.choice(ids))

        steps = [
            lambda: ended(Call(abs, -1)),
            lambda: ended(Call(int, "x")),
            lambda: ended(Call(abs, -1), notify=False),
            lambda: ended(Agent("reader", "read")),
            cancelled, turn, turn, resumed, purged, cleared,
            lambda: store.forget(settings.retention, 0.0),
        ]  # fmt: skip
        for _ in range(3):
            await ended(Call(abs, -1))
        for _ in range(120):
            if not ids:
                await ended(Call(abs, -1))
            await rng.choice(steps)()
        await thread.clear()
        check(path)
        counts = await mt.stats()
        statistics = await store.statistics(None)
        ended_ones = sum(counts.get(name, 0) for name in ("completed", "failed", "cancelled"))
        assert ended_ones == len(await mt.list("all", limit=1_000))
        assert statistics.total == await store.count(Query()) == 0
    check(path)
