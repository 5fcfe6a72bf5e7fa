"""Shell commands: one at a time and many at once, beside bare processes and beside command queues."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

from meantime import Meantime, Run, Shell, Status, Task
from meantime.execution.context import WorkContext
from meantime.ports.runner import Assignment
from meantime.runners.shell.output_ring import look
from meantime.runners.shell.runner import ShellRunner
from meantime.runners.shell.shim import cells
from meantime.thread import Thread

from . import queues
from .measure import (
    RATIOS,
    TABLES,
    UNLIMITED,
    Bare,
    Ratio,
    folder,
    p50,
    peak,
    ratio,
    reset_peak,
    table,
    us,
    verdict,
)

ROUNDS = 200
TRUE = [queues.COMMAND]
AT_ONCE = queues.WIDTH
MANY = 1_000  # at once, beside bare processes
START_TARGET = 2.2  # times a bare process
REPEATS = 3
_numbers = count()


async def run() -> None:
    await _one_at_a_time()
    await _at_once()
    await _many()
    await _waiting()


# -- one at a time


async def _one_at_a_time() -> None:
    """Interleaved, so that a slow moment of the machine hits all alike."""
    with folder() as path, queues.opened() as (here, absent):
        disk, runner = Bare(path / "bare.db"), ShellRunner(path / "alone")
        async with Meantime.open(path / "work.db", settings=UNLIMITED, durability="full") as mt:
            thread = mt.thread("bench")
            ways: dict[str, Callable[[], Awaitable[float]]] = {
                "bare posix_spawn + waitpid": _blocking(_bare),
                "subprocess.run, captured": _blocking(_captured),
                "our shim, start → end known": lambda: _shim(runner),
                "bare INSERT + COMMIT, FULL": _blocking(disk.once),
                "through the ledger, start → told": lambda: _told(thread),
            }
            ways |= {queue.name: _blocking(queue.once) for queue in here}
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    times[name].append(await way())
        await runner.close()
        disk.close()
    base = p50(next(iter(times.values())))
    rows: list[list[str]] = []
    for name, taken in times.items():
        value = p50(taken)
        rows.append([name, us(value), ratio(value, base), ""])
        if name.startswith("our shim"):
            rows[-1][-1] = verdict(value / base, START_TARGET)
    rows += [[name, why, "", ""] for name, why in absent]
    TABLES["commands"] = [{"name": name, "us": p50(taken) * 1e6} for name, taken in times.items()]
    TABLES["commands"] += [{"name": name, "missing": why} for name, why in absent]
    shim = "our shim, start → end known"  # the way through the ledger waits for the disk, which varies
    RATIOS[f"commands/{shim}, of a bare process"] = Ratio(p50(times[shim]) / base)
    table(f"One command at a time, {queues.COMMAND} (p50 of {ROUNDS})", ["", "time", "ratio", "target"], rows)


def _blocking(way: Callable[[], object]) -> Callable[[], Awaitable[float]]:
    async def timed() -> float:
        began = time.perf_counter()
        way()
        return time.perf_counter() - began

    return timed


def _bare() -> None:
    os.waitpid(os.posix_spawn(TRUE[0], TRUE, os.environ), 0)


def _captured() -> None:
    subprocess.run(TRUE, capture_output=True, check=True)


async def _shim(runner: ShellRunner) -> float:
    """The runner without a ledger: files, hand-over, spawn, output, report."""
    began = time.perf_counter()
    order = Shell(TRUE).order()
    task = Task(id=f"t_{next(_numbers)}", thread="t", work=order.work, status=Status.RUNNING, run=Run())
    context = WorkContext(task, asyncio.get_running_loop(), time.time, lambda id, now: None)
    runner.prepare(task)
    report = await runner.run(Assignment(task, None, (), order.kwargs), context)
    took = time.perf_counter() - began
    assert report.result is not None, report
    runner.forget(task)
    return took


async def _told(thread: Thread) -> float:
    began = time.perf_counter()
    await thread.start(Shell(TRUE))
    await _hear_all(thread, 1)
    return time.perf_counter() - began


async def _hear_all(thread: Thread, many: int) -> None:
    told = 0
    async for _ in thread.wakeups():
        async with thread.turn(limit=1_000) as turn:
            told += len(turn.notices)
            assert all(notice.task.status is Status.COMPLETED for notice in turn.notices)
            await turn.ack()
        if told >= many:
            return


# -- many at once


async def _at_once() -> None:
    with folder() as path, queues.opened() as (here, absent):
        async with Meantime.open(path / "work.db", settings=UNLIMITED, durability="full") as mt:
            thread = mt.thread("bench")
            await _told(thread)  # the zygote is there
            reset_peak()
            before = peak()
            ways: dict[str, Callable[[], Awaitable[float]]] = {
                "subprocess.Popen": _blocking(_popen),
                "through the ledger, start → told": lambda: _all_told(thread),
            }
            ways |= {queue.name: _blocking(lambda queue=queue: queue.at_once(AT_ONCE)) for queue in here}
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(REPEATS):
                for name, way in ways.items():
                    times[name].append(await way())
            grown = peak() - before
    base = p50(next(iter(times.values())))
    rows = [
        [name, f"{p50(taken):.3f} s", us(p50(taken) / AT_ONCE), ratio(p50(taken), base)]
        for name, taken in times.items()
    ]
    rows += [[name, why, "", ""] for name, why in absent]
    rows.append(["growth of our owner's memory", f"{grown / 1e6:.1f} MB", "", ""])
    table(f"{AT_ONCE} commands at once (p50 of {REPEATS})", ["", "all", "each", "ratio"], rows)


def _popen() -> None:
    pipe = subprocess.PIPE
    for process in [subprocess.Popen(TRUE, stdout=pipe, stderr=pipe) for _ in range(AT_ONCE)]:
        process.communicate()


async def _all_told(thread: Thread) -> float:
    began = time.perf_counter()
    telling = asyncio.create_task(_hear_all(thread, AT_ONCE))
    await asyncio.gather(*(thread.start(Shell(TRUE)) for _ in range(AT_ONCE)))
    await telling
    return time.perf_counter() - began


async def _many() -> None:
    """The runner alone, without a ledger, beside as many bare processes."""
    with folder() as path:
        runner = ShellRunner(path / "many")
        await _shim(runner)  # the zygote is there
        bare: list[float] = []
        ours: list[float] = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            _spawned(MANY)
            bare.append(time.perf_counter() - began)
            began = time.perf_counter()
            await asyncio.gather(*(_shim(runner) for _ in range(MANY)))
            ours.append(time.perf_counter() - began)
        await runner.close()
    value = p50(ours) / p50(bare)
    RATIOS[f"commands/{MANY:,} at once through shims, of bare processes"] = Ratio(value)
    rows = [
        ["bare posix_spawn + waitpid", f"{p50(bare):.3f} s", us(p50(bare) / MANY), ""],
        ["our shims", f"{p50(ours):.3f} s", us(p50(ours) / MANY), verdict(value, START_TARGET)],
    ]
    table(f"{MANY:,} commands at once (p50 of {REPEATS}): {value:.2f}×", ["", "all", "each", "target"], rows)


def _spawned(count: int) -> None:
    for pid in [os.posix_spawn(TRUE[0], TRUE, os.environ) for _ in range(count)]:
        os.waitpid(pid, 0)


async def _waiting() -> None:
    """What a shim costs while its command does nothing."""
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread = mt.thread("bench")
            await asyncio.gather(*(thread.start(Shell(["sleep", "600"])) for _ in range(AT_ONCE)))
            await asyncio.sleep(2)  # all run, and their shims wait
            files = (path / "work.db.commands").glob(f"*{cells.STATE_FILE}")
            states = [look(file.with_suffix("")) for file in files]
            used = [_private(state[cells.SHIM_PID]) for state in states if state is not None]
            assert len(used) == AT_ONCE
            await thread.cancel_all()
            while await thread.list(limit=1):
                await thread.wait(timeout=60)
    value = p50(used) / 1e6
    rows = [["private memory of a shim", f"{value:.2f} MB", f"{max(used) / 1e6:.2f} MB", verdict(value, 2)]]
    table(f"{AT_ONCE} sleeping commands", ["", "p50", "most", "target (MB)"], rows)


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
