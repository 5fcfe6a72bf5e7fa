"""Plays families of faults and prints what it found: `make faults`, or `python -m tests.faults.run`."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from . import strace
from .about import ABOUT
from .families import FAMILIES, SEED, Family
from .reports import add_families, version

HELP = f"""
Without a name every family is played. A name may be the first word of several: `link` is all of link-*.
The same seed makes the same faults: --seed, or {SEED}, repeats a run.
Each family is played in a process of its own, as many at once as there are cores.
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
    began = time.monotonic()
    playable = list[Family]()
    for family in chosen:
        if not (why_not := family.missing()):
            playable.append(family)
            continue
        print(f"{family.title:<44} skipped: {why_not}", flush=True)
        if strace.is_ci() and family.missing is strace.missing:
            return 1
    every = list[Played]()
    for played in _all_played(playable, seed):
        print(played.line, flush=True)
        every.append(played)
        if given.report is not None:
            order = [family.name for family in FAMILIES]
            add_families(given.report, {played.name: _result(played, seed)}, order)
    return _summed(every, seed, time.monotonic() - began)


class Played(NamedTuple):
    """What came of a family, to be carried between processes."""

    name: str
    seconds: float
    line: str
    counts: tuple[int, int, int, int]  # faults, lost, doubled, misordered
    problems: list[str]


def named(words: Sequence[str]) -> list[Family]:
    """Those that are meant, each once, in their own order."""
    for word in words:
        if not any(_means(word, family) for family in FAMILIES):
            known = ", ".join(family.name for family in FAMILIES)
            raise LookupError(f"There is no family {word!r}. There are: {known}.")
    return [family for family in FAMILIES if not words or any(_means(word, family) for word in words)]


def _means(word: str, family: Family) -> bool:
    return family.name == word or family.name.startswith(f"{word}-")


def _all_played(families: Sequence[Family], seed: int) -> Iterator[Played]:
    """In their own order; one alone in this process."""
    if len(families) == 1:
        yield _played(families[0], seed)
        return
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), fresh, _hush, max_tasks_per_child=1) as pool:
        yield from pool.map(_played_by_name, [family.name for family in families], [seed] * len(families))


def _played_by_name(name: str, seed: int) -> Played:
    return _played(next(family for family in FAMILIES if family.name == name), seed)


def _played(family: Family, seed: int) -> Played:
    began = time.monotonic()
    tally = family.play(seed, *family.whole, f"python -m tests.faults.run {family.name} --seed {seed}")
    counts = (tally.faults, tally.lost, tally.doubled, tally.misordered)
    seconds = time.monotonic() - began
    return Played(family.name, seconds, f"{tally}  ({seconds:.1f} s)", counts, tally.problems)


def _result(played: Played, seed: int) -> dict[str, Any]:
    """For the report."""
    family = next(family for family in FAMILIES if family.name == played.name)
    counts: dict[str, Any] = dict(
        zip(("faults", "lost", "doubled", "misordered"), played.counts, strict=True)
    )
    about = ABOUT.get(family.name, f"{family.title[:1].upper()}{family.title[1:]}.")
    if played.problems:
        counts["problem"] = played.problems[0].split("\n")[1][:200]
    more = {"seed": seed, "seconds": round(played.seconds), "version": version()}
    return {"title": family.title, "about": about, **counts, **more}


def _hush() -> None:
    logging.getLogger("meantime").setLevel(logging.CRITICAL)  # of failures that we made ourselves


def _summed(every: Sequence[Played], seed: int, seconds: float) -> int:
    problems = [problem for played in every for problem in played.problems]
    for problem in problems:
        print(f"\n{problem}", file=sys.stderr)
    faults, lost, doubled, misordered = map(
        sum, zip((0, 0, 0, 0), *(each.counts for each in every), strict=True)
    )
    print(f"{faults} faults, {lost} lost, {doubled} doubled, {misordered} misordered in {seconds:.0f} s")
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
    parser.add_argument("--report", type=Path, help="a JSON file in which each family's last result is kept")
    return parser


if __name__ == "__main__":
    _hush()
    sys.exit(main())
