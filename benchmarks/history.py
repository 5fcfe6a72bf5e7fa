"""With 1,000, 10,000 and 100,000 finished tasks: looking stays quick, and a turn does not feel them."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from pathlib import Path

from meantime import Call, Meantime
from meantime.kernel.change import Facts, decide, submit
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Completed, Failed, Run, Task, Work
from meantime.ports.store import CommitResult
from meantime.stores.sqlite.commit import SQL, Changes, encode
from meantime.stores.sqlite.sql import migrate

from .measure import RATIOS, TABLES, UNLIMITED, Ratio, folder, p50, table, us, verdict

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 100
AT_ONCE = 50_000  # tasks of one transaction
TURN = "start → told → ack"


def fill(path: Path, count: int) -> list[str]:
    """History as the runtime would have written it: told endings over 20 threads, 1 in 10 failed. The
    rows are the store's own, in few transactions: a million of them are there in a minute or two."""
    ids: list[str] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -500000")  # KB: random ids touch all pages of their index
        migrate(db)
        changes = Changes()
        for at in range(0, count, AT_ONCE):
            cursor = db.cursor()
            cursor.execute("BEGIN")
            for number in range(at, min(count, at + AT_ONCE)):
                ids.append(_ended(cursor, changes, number))
            changes.finish(cursor)
            _tell(cursor)
            cursor.execute("COMMIT")
    path.chmod(0o600)
    return ids


def _ended(cursor: sqlite3.Cursor, changes: Changes, at: int) -> str:
    now = time.time()
    id = f"t_{(at * 7919 + 13) % 32**6:06x}{at % 10000:04d}"[:12] + f"{at:x}"
    run = Run(queued_at=now, started_at=now)
    task = Task(
        id=id, thread=f"thread-{at % 20}", work=Work("call", "m:f"), status=Status.RUNNING, run=run,
        created_at=now, updated_at=now, batch=f"b{at // 10}", description=f"task number {at}",
    )  # fmt: skip
    failed = at % 10 == 0
    outcome = Failed("no") if failed else Completed({"at": at})
    done = decide(task, Move.FAIL if failed else Move.COMPLETE, Facts(outcome=outcome), now)
    for change in (submit(task), done):
        written = changes.apply(cursor, change, bytearray(encode(change.task)), None)
        assert written.result is CommitResult.DONE
    return id


def _tell(cursor: sqlite3.Cursor) -> None:
    told = cursor.execute(
        "UPDATE notices INDEXED BY notices_open "
        "SET state = 'told', turn = 'fill', deliveries = 1, told_at = at "
        "WHERE state = 'unread'"
    ).rowcount
    cursor.execute(SQL["count_settled"], (told, "told"))


async def noop() -> None:
    return None


def verbs_of(mt: Meantime, ids: list[str]) -> dict[str, Callable[[], Awaitable[object]]]:
    thread = mt.thread("thread-3")

    async def turn() -> None:
        handle = await thread.start(Call(noop))
        await handle.wait()
        async with thread.turn() as turn:
            await turn.ack()

    return {
        "list page of 50": lambda: mt.list(limit=50),
        "filter by status": lambda: mt.list("failed", limit=50),
        "filter by thread": lambda: mt.list(thread="thread-3", limit=50),
        "thread and status": lambda: mt.list("failed", thread="thread-3", limit=50),
        "id prefix": lambda: mt.get(ids[len(ids) // 2][:-1]),
        "thread.list('all')": lambda: thread.list("all"),
        "reminder": lambda: thread.reminder(),
        TURN: turn,
    }


async def run() -> None:
    """The sizes take turns, so that a slow moment of the disk hits all alike."""
    async with AsyncExitStack() as stack:
        path = stack.enter_context(folder())
        sizes: list[dict[str, Callable[[], Awaitable[object]]]] = []
        for size in SIZES:
            ids = fill(path / f"{size}.db", size)
            mt = await stack.enter_async_context(Meantime.open(path / f"{size}.db", settings=UNLIMITED))
            sizes.append(verbs_of(mt, ids))
        looks = {name: await _times([verbs[name] for verbs in sizes]) for name in sizes[0]}
    TABLES["history"] = [
        {"name": name, "sizes": SIZES, "us": [taken * 1e6 for taken in times]}
        for name, times in looks.items()
    ]
    for name in ("list page of 50", TURN):
        grown = looks[name][-1] / looks[name][0]
        RATIOS[f"history/{name} beside {SIZES[-1]:,}, of that beside {SIZES[0]:,}"] = Ratio(grown)
    rows = [
        [name, *map(us, times), "" if name == TURN else verdict(times[-1] * 1e3, 1)]
        for name, times in looks.items()
    ]
    head = ["p50 with finished tasks:", *(f"{size:,}" for size in SIZES), "target (ms)"]
    table("Looking and turning beside history", head, rows)


async def _times(verbs: list[Callable[[], Awaitable[object]]]) -> list[float]:
    times: list[list[float]] = [[] for _ in verbs]
    for _ in range(ROUNDS):
        for taken, verb in zip(times, verbs, strict=True):
            taken.append(await _time(verb))
    return [p50(taken) for taken in times]


async def _time(verb: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    try:
        await verb()
    except LookupError:
        pass  # an ambiguous or missing prefix costs the same look
    except Exception as problem:
        if type(problem).__name__ != "Ambiguous":
            raise
    return time.perf_counter() - began
