"""Runs every family and prints what it found: `python -m tests.faults.run`.

MEANTIME_FAULT_SEED repeats a run; MEANTIME_FAULT_FAMILY runs one family only, by its name.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from . import strace
from .families import FAMILIES, SEED
from .judge import Tally

FAMILY = "MEANTIME_FAULT_FAMILY"


def main() -> int:
    seed = int(os.environ.get(SEED) or time.time_ns() % 1_000_000)
    print(f"seed {seed} (repeat with {SEED}={seed})", flush=True)
    chosen = os.environ.get(FAMILY, "")
    logging.getLogger("meantime").setLevel(logging.CRITICAL)  # of failures that we made ourselves
    tallies: list[Tally] = []
    for family in FAMILIES:
        if chosen and not family.name.startswith(chosen):
            continue
        if why_not := family.missing():
            print(f"{family.title:<44} skipped: {why_not}", flush=True)
            if strace.is_ci() and family.missing is strace.missing:
                return 1
            continue
        began = time.monotonic()
        again = f"{SEED}={seed} {FAMILY}={family.name} python -m tests.faults.run"
        tally = family.play(seed, *family.whole, again)
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
