"""Runs every family and prints what it found: `python -m tests.faults.run`.

MEANTIME_FAULT_SEED repeats a run; MEANTIME_FAULT_FAMILY runs one family only, by its name.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable

from . import (
    agentruns,
    disk,
    filling,
    hostile,
    kills,
    launches,
    links,
    machine,
    orphans,
    posts,
    schedules,
    strace,
    toolcalls,
)
from .judge import Tally

SEED = "MEANTIME_FAULT_SEED"
FAMILY = "MEANTIME_FAULT_FAMILY"


def families(seed: int) -> dict[str, Callable[[], Tally]]:
    def again(family: str) -> str:
        return f"{SEED}={seed} {FAMILY}={family} python -m tests.faults.run"

    return {
        "1": lambda: machine.run(seed, 80, 40, again("1")),
        "2": lambda: kills.sweep(seed, 84, 28, again("2")),
        "3": lambda: kills.at_random(seed, 6, 4, again("3")),
        "4": lambda: disk.run(seed, 24, again("4")),
        "5": lambda: schedules.run(seed, 600, again("5")),
        "6": lambda: hostile.run(seed, 0, again("6")),
        "7": lambda: orphans.at_random(seed, 6, 4, again("7")),
        "7b": lambda: launches.sweep(seed, 28, again("7b")),
        "9": lambda: toolcalls.at_random(seed, 6, 4, again("9")),
        "agents": lambda: agentruns.sweep(seed, 60, again("agents")),
        "link-daemons": lambda: links.daemons(seed, 4, 5, again("link-daemons")),
        "link-executors": lambda: links.executors(seed, 4, 6, again("link-executors")),
        "link-cuts": lambda: links.cuts(seed, 4, 50, again("link-cuts")),
        "writes": lambda: posts.sweep(seed, 48, again("writes")),
        "full": lambda: filling.run(seed, 5, again("full")),
    }


NEED_STRACE = {"2", "4", "7b", "agents", "writes"}


def main() -> int:
    seed = int(os.environ.get(SEED) or time.time_ns() % 1_000_000)
    print(f"seed {seed} (repeat with {SEED}={seed})", flush=True)
    chosen = os.environ.get(FAMILY, "")
    logging.getLogger("meantime").setLevel(logging.CRITICAL)  # of failures that we made ourselves
    why_not = strace.missing()
    tallies: list[Tally] = []
    for name, family in families(seed).items():
        if chosen and not name.startswith(chosen):
            continue
        if name in NEED_STRACE and why_not:
            print(f"family {name} skipped: {why_not}", flush=True)
            if strace.is_ci():
                return 1
            continue
        if name == "full" and (no_disk := filling.missing()):
            print(f"family {name} skipped: {no_disk}", flush=True)
            continue
        began = time.monotonic()
        tally = family()
        tallies.append(tally)
        print(f"{tally}  ({time.monotonic() - began:.1f} s)", flush=True)
    problems = [problem for tally in tallies for problem in tally.problems]
    for problem in problems:
        print(f"\n{problem}", file=sys.stderr)
    print(
        f"{sum(t.faults for t in tallies)} faults, {sum(t.lost for t in tallies)} lost, "
        f"{sum(t.doubled for t in tallies)} doubled, {sum(t.misordered for t in tallies)} misordered"
    )
    print(f"seed {seed}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
