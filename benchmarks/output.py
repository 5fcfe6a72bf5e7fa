"""1 GB of output through a command of ours, beside the same producer into a file through `cat`; and a line
that is followed, beside one that the same event loop reads from a pipe.

`cat` keeps all of it, we keep its two ends: what is compared is how fast the producer may go.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from meantime import Meantime, Settings, Shell
from meantime.runners.shell.shim import cells

from .measure import RATIOS, UNLIMITED, Ratio, folder, p50, peak, ratio, reset_peak, table, us, verdict

BYTES = 1_000_000_000
PRODUCERS = {"raw": f"head -c {BYTES} /dev/zero", "lines": f"yes 'a line of text' | head -c {BYTES}"}
REPEATS = 3
KEPT = Settings().output_head + Settings().output_ring
STREAMS = (cells.OUT_FILE, cells.ERR_FILE, cells.ORDER_FILE)
AFTERWARDS = (*STREAMS, cells.WHOLE_FILE)
LOOK = 0.05  # seconds between looks at the disk
LINES, PAUSE = 200, 0.005  # and seconds between two of them
# Each line is the time at which it was written, on the clock that all processes share.
SPEAKER = f"""
import os, time
for _ in range({LINES}):
    os.write(1, b"%d\\n" % time.monotonic_ns())
    time.sleep({PAUSE})
"""
FOLLOW_TARGET = 2.0


async def run() -> None:
    await _flood()
    await _lines()


async def _flood() -> None:
    rows: list[list[str]] = []
    growths: list[float] = []
    running: list[int] = []
    ended: list[int] = []
    for name, producer in PRODUCERS.items():
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(REPEATS):  # one after the other, so that a slow moment hits both alike
            with folder() as path:
                theirs.append(_through_cat(producer, path / "file"))
            with folder() as path:
                took, growth, most, after = await _through_us(producer, path)
            ours.append(took)
            growths.append(growth)
            running.append(most)
            ended.append(after)
        rows.append([f"{name}: | cat > file", _speed(p50(theirs)), "1.00×"])
        rows.append([f"{name}: Meantime", _speed(p50(ours)), ratio(p50(theirs), p50(ours))])
    table(f"Throughput of output, {BYTES / 1e9:g} GB (p50 of {REPEATS})", ["", "MB/s", "as fast"], rows)
    most, after = (max(sizes) - KEPT for sizes in (running, ended))
    head = ["", "most", "target"]
    rows = [
        ["growth of our owner, tail and follow at the end", f"{max(growths) / 1e6:.1f} MB"],
        ["disk over head + ring, as it comes", f"{most / 1024:.0f} KB"],
        ["disk over head + ring, after its end", f"{after / 1024:.0f} KB"],
    ]
    targets = (verdict(max(growths) / 1e6, 64), verdict(most / 1024, 64), verdict(after / 1024, 64))
    table("What it takes", head, [[*row, target] for row, target in zip(rows, targets, strict=True)])


# -- one line after the other


async def _lines() -> None:
    """From the moment at which a line is written until a reader has it."""
    words = [sys.executable, "-S", "-c", SPEAKER]
    piped: list[float] = []
    followed: list[float] = []
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            for _ in range(REPEATS):  # in turn, so that a slow moment hits both alike
                pipe = await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE)
                assert pipe.stdout is not None
                async for line in pipe.stdout:
                    piped.append(_age(line))
                await pipe.wait()
                handle = await mt.thread("bench").start(Shell(words))
                async for chunk in handle.log.follow():
                    followed += map(_age, chunk.data.splitlines())
    value = p50(followed) / p50(piped)
    RATIOS["output/a followed line, of one read from a pipe"] = Ratio(value)
    rows = [
        ["read from a pipe by the same loop", us(p50(piped)), ""],
        ["followed", us(p50(followed)), verdict(value, FOLLOW_TARGET)],
    ]
    table(f"A line, from writing to reading (p50 of {len(piped)}): {value:.2f}×", ["", "", "target"], rows)


def _age(line: bytes) -> float:
    return (time.monotonic_ns() - int(line)) / 1e9


# -- a flood


def _through_cat(producer: str, file: Path) -> float:
    began = time.perf_counter()
    subprocess.run(["/bin/sh", "-c", f"{producer} | cat > {file}"], check=True)
    took = time.perf_counter() - began
    assert file.stat().st_size == BYTES
    return took


async def _through_us(producer: str, path: Path) -> tuple[float, float, int, int]:
    """Seconds, growth of our memory, and bytes on the disk: the most while it ran, and afterwards."""
    async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
        thread = mt.thread("bench")
        await (await thread.start(Shell("true"))).wait()  # the zygote is there
        files = path / "work.db.commands"
        most = 0
        reset_peak()
        memory = peak()
        began = time.perf_counter()
        handle = await thread.start(Shell(producer))
        waiting = asyncio.ensure_future(handle.wait())
        while not (await asyncio.wait({waiting}, timeout=LOOK))[0]:
            most = max(most, _disk(files, STREAMS))
        took = time.perf_counter() - began
        tail = await handle.log.tail(1_000)
        async for chunk in handle.log.follow():
            tail = chunk
        assert tail.total == tail.next == BYTES, tail
        return took, peak() - memory, most, _disk(files, AFTERWARDS)


def _disk(files: Path, kinds: tuple[str, ...]) -> int:
    """As long as the files are: what the file system keeps to find them is not ours to count."""
    return sum(file.stat().st_size for file in files.iterdir() if file.suffix in kinds)


def _speed(seconds: float) -> str:
    return f"{BYTES / seconds / 1e6:,.0f}"
