"""Family watch: kill -9 of an owner whose watches find something all the time."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

from . import strace, watched
from .judge import Tally, Verdict
from .trial import side_by_side, trial


def run(seed: int, chains: int, kills: int, reproduce: str, plant: str = "") -> Tally:
    """`chains` ledgers, each killed `kills` times in a row."""
    tally = Tally("kill -9 while watches find something", reproduce)
    rng = random.Random(seed)
    side_by_side(
        [rng.randrange(1 << 30) for _ in range(chains)], lambda one: _chain(tally, one, kills, plant)
    )
    return tally


def _chain(tally: Tally, seed: int, kills: int, plant: str) -> None:
    def make(folder: Path) -> int:
        for life in range(kills):
            order = [sys.executable, "-m", "tests.faults.watched", str(folder), str(seed + life)]
            ended = subprocess.run(
                [*order, *([plant] if plant else [])], capture_output=True, timeout=strace.OVER, check=False
            )
            assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2_000:]
        return kills

    trial(tally, f"seed {seed}", make, judge, lambda folder: (folder / watched.STOP).touch())


def judge(folder: Path) -> Verdict:
    told = asyncio.run(watched.recover(folder))
    printed = [line for line in (folder / watched.FILE).read_text().splitlines() if line.startswith("ERROR")]
    lost: list[str] = []
    doubled: list[str] = []
    for watch, notices in told.items():
        behind = 0  # the number of the last line that was told
        for kind, text in notices:
            if kind == "ending":
                continue
            count, first, last = text.split("|")
            begin, end = (int(line.split()[1]) for line in (first, last))
            if begin > behind + 1 or int(count) < end - begin + 1:
                lost.append(f"{watch}: {text} follows line {behind}")
            if begin <= behind or int(count) > end - begin + 1:
                doubled.append(f"{watch}: {text} follows line {behind}")
            behind = max(behind, end)
        if behind < len(printed):
            lost.append(f"{watch}: {len(printed) - behind} of {len(printed)} lines were never told")
        endings = [text for kind, text in notices if kind == "ending"]
        if not any(text.startswith(f"matched {len(printed)} times until ^END") for text in endings):
            lost.append(f"{watch}: it ended with {endings}, and {len(printed)} lines were printed")
        if len(endings) > 1:
            doubled.append(f"{watch}: it ended {len(endings)} times")
    assert printed, "nothing was printed before the kill"
    return Verdict(lost=tuple(lost), doubled=tuple(doubled))
