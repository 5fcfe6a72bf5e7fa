"""10,000 no-op functions, start to told, beside replaying our own SQL bare in the same groups."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from meantime import Call, Meantime
from meantime.stores.sqlite import sql
from meantime.stores.sqlite.connection import connect
from meantime.stores.sqlite.writer import Writer

from .measure import RATIOS, TABLES, UNLIMITED, Bare, Ratio, cpu, folder, table, us, verdict

TASKS = 10_000
STARTERS = 100
SLOWER = 2_000  # microseconds more for each fdatasync, as on a disk that waits for the flash
SLOW = f"on one whose fdatasync takes {SLOWER / 1_000:g} ms more"
Group = tuple[bool, list[tuple[str, Any, bool]]]


async def noop() -> None:
    return None


async def once(path: Path, tasks: int = TASKS) -> tuple[float, float]:
    """Wall and CPU seconds for starting, running, recording, telling and acknowledging all of them."""
    async with Meantime.open(path, settings=UNLIMITED) as mt:
        thread = mt.thread("bench")
        told = 0

        async def conversation() -> None:
            nonlocal told
            async for _ in thread.wakeups():
                async with thread.turn(limit=1_000) as turn:
                    told += len(turn.notices)
                    await turn.ack()
                if told >= tasks:
                    return

        async def starter() -> None:
            for _ in range(tasks // STARTERS):
                await thread.start(Call(noop))

        began, used = time.perf_counter(), cpu()
        talking = asyncio.create_task(conversation())
        await asyncio.gather(*(starter() for _ in range(STARTERS)))
        await talking
        return time.perf_counter() - began, cpu() - used


class Recorder:
    """Writes down every statement of every group, with its values."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self._transact = Writer._transact

    def __enter__(self) -> Recorder:
        recorder, transact = self, self._transact

        def recording(writer: Any, group: Any) -> Any:
            real = writer._cursor
            statements: list[tuple[str, Any, bool]] = []
            writer._cursor = _Cursor(real, statements)
            try:
                return transact(writer, group)
            finally:
                writer._cursor = real
                recorder.groups.append((any(write.durable for write in group), statements))

        Writer._transact = recording  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Writer._transact = self._transact  # type: ignore[method-assign]


class _Cursor:
    def __init__(self, real: Any, statements: list[tuple[str, Any, bool]]) -> None:
        self._real = real
        self._statements = statements

    def execute(self, statement: str, values: Any = ()) -> Any:
        self._statements.append((statement, values, False))
        return self._real.execute(statement, values)

    def executemany(self, statement: str, values: Any) -> Any:
        values = list(values)
        self._statements.append((statement, values, True))
        return self._real.executemany(statement, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def replay(path: Path, groups: list[Group]) -> float:
    """CPU seconds of the same statements in the same transactions, without anything around them."""
    db = connect(path)
    sql.migrate(db)
    cursor = db.cursor()
    used = cpu()
    for _, statements in groups:
        for statement, values, many in statements:
            if many:
                cursor.executemany(statement, values)
            else:
                cursor.execute(statement, values)
                if cursor.description is not None:
                    cursor.fetchall()
    used = cpu() - used
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    return used


async def yardstick() -> float:
    """CPU seconds of the least that a durable no-op could cost in Python: a row, its ending and an asyncio
    task, in groups as large as ours. It does not change with our own code, as the replay does."""
    with folder() as path:
        bare = Bare(path / "bare.db")
        used = [await _simple(bare, at) for at in range(3 * TASKS // STARTERS)]
        bare.close()
    return sum(used) / len(used) / STARTERS


async def _simple(bare: Bare, group: int) -> float:
    ids = [f"y_{group:05}_{at:05}" for at in range(STARTERS)]
    began = cpu()
    bare.group("INSERT INTO t VALUES (?, ?)", [(id, "x" * 300) for id in ids])
    await asyncio.gather(*(asyncio.create_task(noop()) for _ in ids))
    bare.group("UPDATE t SET body = ? WHERE id = ?", [("y" * 300, id) for id in ids])
    return cpu() - began


async def starting() -> tuple[float, float]:
    """Starts per second: one starter, and a hundred."""
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread, gate = mt.thread("bench"), asyncio.Event()

            async def starter(count: int) -> None:
                for _ in range(count):
                    await thread.start(Call(gate.wait))

            began = time.perf_counter()
            await starter(300)
            alone = 300 / (time.perf_counter() - began)
            began = time.perf_counter()
            await asyncio.gather(*(starter(100) for _ in range(STARTERS)))
            together = STARTERS * 100 / (time.perf_counter() - began)
            gate.set()
            while await thread.list(limit=1):
                await thread.wait(timeout=30)
    return alone, together


async def run() -> None:
    with folder() as path, Recorder() as recorder:
        await once(path / "recorded.db")
    bare, wall, used = [], [], []
    for _ in range(3):
        with folder() as path:
            bare.append(replay(path / "bare.db", recorder.groups))
            took, spent = await once(path / "work.db")
            wall.append(took)
            used.append(spent)
    rate, ours, theirs = TASKS / min(wall), min(used) / TASKS, min(bare) / TASKS
    simple = await yardstick()
    RATIOS["end_to_end/CPU of a task, of the least work"] = Ratio(ours / simple)
    TABLES["end_to_end"] = [
        {"cpu_us": ours * 1e6, "sql_us": theirs * 1e6, "simple_us": simple * 1e6, "rate": rate}
    ]
    groups = len(recorder.groups)
    statements = sum(len(found) - 2 for _, found in recorder.groups)
    table(
        f"End to end, {TASKS:,} no-op async functions: start → run → ending and notice durable → turn → ack",
        ["", "per task", "ratio", "target"],
        [
            ["bare replay of our SQL, CPU", f"{theirs * 1e6:.1f} µs", "1.00×", ""],
            ["the least work: a row, its ending, an asyncio task", us(simple), f"{simple / theirs:.2f}×", ""],
            ["Meantime, CPU", f"{ours * 1e6:.1f} µs", f"{ours / theirs:.2f}×", verdict(ours * 1e6, 120)],
            ["Meantime, tasks per second", f"{rate:,.0f}", "", ""],
            ["statements / groups", f"{statements / TASKS:.1f} / {groups}", "", ""],
        ],
    )
    table(
        f"Group commit: durable starts per second, one starter and {STARTERS}",
        ["", "one", "together", "ratio", "target"],
        [_compared("on this disk", await starting()), _compared(SLOW, slow_starting())],
    )


def slow_starting() -> tuple[float, float] | None:
    """The same in a process whose disk takes longer; None where there is no strace."""
    if shutil.which("strace") is None:
        return None
    slow = ["-e", "trace=fdatasync", "-e", f"inject=fdatasync:delay_exit={SLOWER}"]
    tracer = ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", *slow]
    code = "import asyncio, json, benchmarks.end_to_end as e; print(json.dumps(asyncio.run(e.starting())))"
    said = subprocess.run([*tracer, sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return tuple(json.loads(said.stdout))


def _compared(name: str, rates: tuple[float, float] | None) -> list[object]:
    if rates is None:
        return [name, "strace is missing", "", "", ""]
    alone, together = rates
    judged = verdict(together / alone, 20, at_most=False)
    return [name, f"{alone:,.0f}", f"{together:,.0f}", f"{together / alone:.1f}×", judged]
