"""With 1,000, 10,000 and 100,000 finished tasks: looking stays quick, and a turn does not feel them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from meantime import Call, Meantime
from meantime.kernel.change import Facts, decide, submit
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Completed, Failed, Run, Task, Work
from meantime.stores.sqlite.store import SqliteStore

from .measure import UNLIMITED, folder, p50, table, us, verdict

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 100


async def fill(path: Path, count: int) -> list[str]:
    """History as the runtime would have written it: told endings over 20 threads, 1 in 10 failed."""
    store = SqliteStore(path, "fast")
    await store.open()
    ids: list[str] = []
    now = time.time()
    for at in range(count):
        id = f"t_{(at * 7919 + 13) % 32**6:06x}{at % 10000:04d}"[:12]
        ids.append(id := f"{id}{at:x}")
        run = Run(queued_at=now, started_at=now)
        task = Task(
            id=id, thread=f"thread-{at % 20}", work=Work("call", "m:f"), status=Status.RUNNING, run=run,
            created_at=now, updated_at=now, batch=f"b{at // 10}", description=f"task number {at}",
        )  # fmt: skip
        store.commit(submit(task))
        outcome = Failed("no") if at % 10 == 0 else Completed({"at": at})
        move = Move.FAIL if at % 10 == 0 else Move.COMPLETE
        done = store.commit(decide(task, move, Facts(outcome=outcome), now))
        if at % 500 == 499:
            await done
    for thread in range(20):
        while await store.lease(f"thread-{thread}", "fill", 1_000, now):
            await store.settle(f"thread-{thread}", "fill", (), (), now)
    await store.close()
    return ids


async def noop() -> None:
    return None


async def run() -> None:
    looks: dict[str, list[float]] = {}
    for size in SIZES:
        with folder() as path:
            ids = await fill(path / "work.db", size)
            async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
                thread = mt.thread("thread-3")

                async def turn(thread=thread) -> None:
                    handle = await thread.start(Call(noop))
                    await handle.wait()
                    async with thread.turn() as turn:
                        await turn.ack()

                verbs: dict[str, Callable[[], Awaitable[object]]] = {
                    "list page of 50": lambda mt=mt: mt.list(limit=50),
                    "filter by status": lambda mt=mt: mt.list("failed", limit=50),
                    "filter by thread": lambda mt=mt: mt.list(thread="thread-3", limit=50),
                    "thread and status": lambda mt=mt: mt.list("failed", thread="thread-3", limit=50),
                    "id prefix": lambda mt=mt, ids=ids: mt.get(ids[len(ids) // 2][:-1]),
                    "thread.list('all')": lambda thread=thread: thread.list("all"),
                    "reminder": lambda thread=thread: thread.reminder(),
                    "start → told → ack": turn,
                }
                for name, verb in verbs.items():
                    looks.setdefault(name, []).append(await _time(verb))
    rows = [
        [name, *map(us, times), "" if "→" in name else verdict(times[-1] * 1e3, 1)]
        for name, times in looks.items()
    ]
    head = ["p50 with finished tasks:", *(f"{size:,}" for size in SIZES), "target (ms)"]
    table("Looking and turning beside history", head, rows)


async def _time(verb: Callable[[], Awaitable[object]]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        try:
            await verb()
        except LookupError:
            pass  # an ambiguous or missing prefix costs the same look
        except Exception as problem:
            if type(problem).__name__ != "Ambiguous":
                raise
        times.append(time.perf_counter() - began)
    return p50(times)
