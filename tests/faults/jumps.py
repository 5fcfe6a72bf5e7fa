"""The wall clock of a daemon, and of all who are connected to it, jumps under load: by libfaketime, with a
file that is read at every look at the clock. Order, timeouts and durations are by the other clock (P9)."""

from __future__ import annotations

import asyncio
import glob
from pathlib import Path

from meantime import Meantime

from .judge import Tally, Verdict
from .links import NAMES, Scene, scene
from .trial import side_by_side, trial

JUMPS = ("-400d", "-1d", "-3", "+0", "+3", "+1d", "+400d")
LONGEST = 6 * 3_600.0  # seconds: no run here takes so long, and the long jumps are longer


def library() -> str:
    return next(iter(glob.glob("/usr/lib*/*/faketime/libfaketimeMT.so.1")), "")


def missing() -> str:
    return "" if library() else "libfaketime is not installed"


def run(seed: int, chains: int, count: int, reproduce: str) -> Tally:
    tally = Tally("jumps of the wall clock under load", reproduce)
    side_by_side(range(chains), lambda number: _chain(tally, seed * 101 + number, count))
    return tally


def _chain(tally: Tally, seed: int, count: int) -> None:
    judged = Verdict()

    def make(folder: Path) -> int:
        nonlocal judged
        clock = folder / "clock"
        clock.write_text("+0\n")
        more = {
            "LD_PRELOAD": library(),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        with scene(folder, seed, more=more) as found:
            _jump(found, clock, count)
            judged = found.judged()
            judged = judged._replace(
                lost=(*judged.lost, *asyncio.run(_wrong_times(found.daemon.home.ledger)))
            )
        return found.faults

    trial(tally, f"{tally.family}, seed {seed}", make, lambda folder: judged)


def _jump(scene: Scene, clock: Path, count: int) -> None:
    for name in NAMES:
        scene.join(name)
    scene.crowd.until_works(NAMES[0], orders=True)  # by the true time
    for number in range(count):
        scene.pause(0.0, 0.3)
        new = clock.with_suffix(".new")
        new.write_text(("+400d" if number == 0 else scene.rng.choice(JUMPS)) + "\n")
        new.rename(clock)
        scene.faults += 1
        scene.crowd.until_works(NAMES[number % len(NAMES)], orders=True)  # by the new time


async def _wrong_times(ledger: Path) -> list[str]:
    async with Meantime.open(ledger) as mt:
        tasks = await mt.list("all", limit=1_000)
        spread = {int((task.created_at) // 86_400) for task in tasks}
        wrong = [f"{task.id} took {task.run.duration} s" for task in tasks if not _is_sane(task.run.duration)]
        return wrong if len(spread) > 1 else [*wrong, "no clock has jumped"]


def _is_sane(duration: float | None) -> bool:
    return duration is not None and 0 <= duration < LONGEST
