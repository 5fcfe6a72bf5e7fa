"""Watches: a match beside an ending, many watches beside one, idle ones beside none, and beside a shell.

Times are of one run, so that the ratios hold on any machine.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from meantime import Limits, Meantime, NoticeRate, Settings, Shell, Thread, WakeBudget, Watch

from .measure import cpu, folder, p50, ratio, table, verdict

ROUNDS = 60
MEGABYTES = 32
MANY = 10
MATCHES = 4
IDLE, SECONDS = 1_000, 3.0
EACH = Settings(
    limits=Limits(per_thread=-1, total=-1),
    wakes=WakeBudget(rounds=-1),
    notices=NoticeRate(0.0, 1_000_000),
    output_head=MEGABYTES << 20,
)
# Says when it printed, or when it is about to end: all processes share the monotonic clock.
PRINTS = "import sys,time\nfor _ in sys.stdin: print('ERROR', time.monotonic(), flush=True)"
ENDS = "import sys,time\nsys.stdin.readline(); print(time.monotonic(), flush=True)"


async def run() -> None:
    with folder() as path:
        matches, endings = await _chains(path)
        scans = {count: [await _scan(path, count) for _ in range(3)] for count in (1, MANY)}
        idle = await _idle(path)
        grep = await asyncio.to_thread(_grep, path)
    match, ending = p50(matches), p50(endings)
    one, many = min(scans[1]), min(scans[MANY])
    ms = "{:.2f} ms".format
    rows = [
        ["ending of a command → turn woken", ms(ending * 1e3), "1.00×", ""],
        ["match printed → turn woken", ms(match * 1e3), ratio(match, ending), verdict(match / ending, 2)],
        [f"one watch, {MEGABYTES} MB of output", ms(one * 1e3), "1.00×", ""],
        [f"{MANY} watches of it", ms(many * 1e3), ratio(many, one), verdict(many / one, 2)],
        ["tail -F | grep -m1, line printed → it ends", ms(grep * 1e3), ratio(grep, match), ""],
    ]
    table("Watches (p50; scans: the best of 3, CPU time)", ["", "time", "ratio", "target"], rows)
    text = "CPU of an owner in {:.0f} s: {:.1f} ms with {:,} idle watches of one log, {:.1f} ms without"
    print(text.format(SECONDS, idle[1] * 1e3, IDLE, idle[0] * 1e3))


async def _woken(thread: Thread) -> float:
    """When the waiting turn is woken; and takes its notices."""
    wakeups = thread.wakeups()
    await anext(wakeups)
    woken = time.monotonic()
    assert isinstance(wakeups, AsyncGenerator)
    await wakeups.aclose()
    return woken


async def _chains(path: Path) -> tuple[list[float], list[float]]:
    matches: list[float] = []
    endings: list[float] = []
    async with Meantime.open(path / "chains.db", settings=EACH) as mt:
        thread, quiet = mt.thread("bench"), mt.thread("quiet")
        server = await quiet.start(Shell([sys.executable, "-c", PRINTS], open_stdin=True))
        await thread.start(Watch(log=server, match="ERROR"))
        for _ in range(ROUNDS):  # interleaved, so that a slow moment hits both alike
            woken = asyncio.ensure_future(_woken(thread))
            await server.send("\n")
            at = await woken
            async with thread.turn() as turn:
                matches.append(at - float(turn.notices[0].text.split()[1]))
                await turn.ack()
            command = await thread.start(Shell([sys.executable, "-c", ENDS], open_stdin=True))
            await asyncio.sleep(0.1)  # it has loaded
            woken = asyncio.ensure_future(_woken(thread))
            await command.send("\n")
            at = await woken
            async with thread.turn() as turn:
                endings.append(at - float(turn.notices[0].text))
                await turn.ack()
        await server.cancel(wait=True)
    return matches, endings


async def _scan(path: Path, count: int) -> float:
    """CPU seconds to search a log that is there, with so many watches of different expressions."""
    async with Meantime.open(path / f"scan-{time.monotonic_ns()}.db", settings=EACH) as mt:
        thread = mt.thread("bench")
        line = "2026-11-18 00:00:00 INFO something happened here, and took 1234 ms"
        size = (MEGABYTES << 20) // MATCHES
        code = f"import sys\nline={line!r} + chr(10)\nfor n in range({MATCHES}):\n"
        code += f" sys.stdout.write(line * ({size} // len(line)) + f'ERROR {{n}}' + chr(10))"
        server = await thread.start(Shell([sys.executable, "-c", code]))
        await server.wait()
        began = cpu()
        watches = [await thread.start(Watch(log=server, match=f"ERROR|panic {n}")) for n in range(count)]
        await thread.wait(*watches)
        used = cpu() - began
        assert {await watch.result() for watch in watches} == {
            f"matched {MATCHES} times until its task ended"
        }
    return used


async def _idle(path: Path) -> tuple[float, float]:
    async with Meantime.open(path / "idle.db", settings=EACH) as mt:
        thread = mt.thread("bench")
        server = await thread.start(Shell("exec sleep 600"))

        async def spent() -> float:
            await asyncio.sleep(0.5)
            began = cpu()
            await asyncio.sleep(SECONDS)
            return cpu() - began

        without = await spent()
        for number in range(IDLE):
            await thread.start(Watch(log=server, match=f"ERROR {number}"))
        idle = await spent()
        await server.cancel(wait=True)
    return without, idle


def _grep(path: Path) -> float:
    """A server that prints a line a second; the shell ends only when `tail` writes again."""
    log = path / "log"
    log.touch()
    found: list[float] = []
    for _ in range(3):
        shell = subprocess.Popen(["sh", "-c", f"tail -n 0 -F {log} | grep -m1 ERROR > /dev/null"])
        time.sleep(0.3)
        with log.open("a") as file:
            file.write("ERROR\n")
        began = time.monotonic()
        while shell.poll() is None:
            time.sleep(0.01)
            if time.monotonic() - began > 1.0:
                with log.open("a") as file:
                    file.write("ok\n")
                time.sleep(0.05)
        found.append(time.monotonic() - began)
    return statistics.median(found)
