"""Plays families of faults and prints what it found: `make faults`, or `python -m tests.faults.run`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Sequence

from . import strace
from .families import FAMILIES, SEED, Family
from .judge import Tally

HELP = f"""
Without a name every family is played. A name may be the first word of several: `link` is all of link-*.
The same seed makes the same faults: --seed, or {SEED}, repeats a run.
From make: make faults FAMILIES="link power"
Exit code 1: something was lost, doubled or misordered. 2: there is no such family.

families:
"""


def main(words: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(words)
    try:
        chosen = named(given.family)
    except LookupError as unknown:
        print(f"{unknown}", file=sys.stderr)
        return 2
    seed = given.seed if given.seed is not None else int(os.environ.get(SEED) or time.time_ns() % 1_000_000)
    print(f"seed {seed} (repeat with --seed {seed})", flush=True)
    began, tallies = time.monotonic(), list[Tally]()
    for family in chosen:
        if why_not := family.missing():
            print(f"{family.title:<44} skipped: {why_not}", flush=True)
            if strace.is_ci() and family.missing is strace.missing:
                return 1
            continue
        tallies.append(_played(family, seed))
    return _summed(tallies, seed, time.monotonic() - began)


def named(words: Sequence[str]) -> list[Family]:
    """Those that are meant, each once, in their own order."""
    for word in words:
        if not any(_means(word, family) for family in FAMILIES):
            known = ", ".join(family.name for family in FAMILIES)
            raise LookupError(f"There is no family {word!r}. There are: {known}.")
    return [family for family in FAMILIES if not words or any(_means(word, family) for word in words)]


def _means(word: str, family: Family) -> bool:
    return family.name == word or family.name.startswith(f"{word}-")


def _played(family: Family, seed: int) -> Tally:
    began = time.monotonic()
    tally = family.play(seed, *family.whole, f"python -m tests.faults.run {family.name} --seed {seed}")
    print(f"{tally}  ({time.monotonic() - began:.1f} s)", flush=True)
    return tally


def _summed(tallies: Sequence[Tally], seed: int, seconds: float) -> int:
    problems = [problem for tally in tallies for problem in tally.problems]
    for problem in problems:
        print(f"\n{problem}", file=sys.stderr)
    print(
        f"{sum(t.faults for t in tallies)} faults, {sum(t.lost for t in tallies)} lost, "
        f"{sum(t.doubled for t in tallies)} doubled, {sum(t.misordered for t in tallies)} misordered "
        f"in {seconds:.0f} s"
    )
    print(f"seed {seed}")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {family.name:<16} {family.title}" for family in FAMILIES)
    parser = argparse.ArgumentParser(
        "python -m tests.faults.run", description=__doc__, epilog=HELP.lstrip() + listed,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("family", nargs="*", help="only these, by their names")
    parser.add_argument("--seed", type=int, help="any number; else it is drawn, and printed")
    return parser


if __name__ == "__main__":
    logging.getLogger("meantime").setLevel(logging.CRITICAL)  # of failures that we made ourselves
    sys.exit(main())
