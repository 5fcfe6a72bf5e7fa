"""Family notify: kill -9 of an owner whose work tells its conversation something all the time."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from . import notified, strace
from .judge import Tally, Verdict
from .trial import side_by_side, trial


def run(seed: int, chains: int, kills: int, reproduce: str, plant: str = "", rate: str = "") -> Tally:
    """`chains` ledgers, each killed `kills` times in a row; half of them tell everything one by one."""
    tally = Tally("kill -9 while work tells before its end", reproduce)
    rng = random.Random(seed)
    jobs = [(rng.randrange(1 << 30), rate or ("each", "rarely")[n % 2]) for n in range(chains)]
    side_by_side(jobs, lambda job: _chain(tally, *job, kills, plant))
    return tally


def _chain(tally: Tally, seed: int, rate: str, kills: int, plant: str) -> None:
    def make(folder: Path) -> int:
        for life in range(kills):
            order = [sys.executable, "-m", "tests.faults.notified", str(folder), str(seed + life), rate]
            ended = subprocess.run(
                [*order, *([plant] if plant else [])], capture_output=True, timeout=strace.OVER, check=False
            )
            assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()[-2_000:]
        return kills

    trial(tally, f"{rate}, seed {seed}", make, lambda folder: judge(folder, rate))


def judge(folder: Path, rate: str) -> Verdict:
    lines = [line.split(" ") for line in (folder / notified.FACTS).read_text().splitlines()]
    attempts = [event for what, event in lines if what == "attempt"]
    accepted = [event for what, event in lines if what == "accepted"]
    told = asyncio.run(notified.recover(folder))
    ids = Counter(id for id, *_ in told)
    doubled = [f"{id} is there {count} times" for id, count in ids.items() if count > 1]
    lasts = [last for *_, last in told]
    places = {event: place for place, event in enumerate(attempts)}
    order = [places[last] for last in lasts if last in places]
    misordered = [] if order == sorted(order) else ["events were told in another order than they came"]
    if rate == "each":
        heard = Counter(lasts)
        lost = [f"{event} was accepted and never told" for event in accepted if not heard[event]]
        doubled += [f"{event} was told {count} times" for event, count in heard.items() if count > 1]
    else:
        counted = sum(count for _, count, *_ in told)
        missing, extra = len(accepted) - counted, counted - len(attempts)
        lost = [f"{missing} of {len(accepted)} events are in no notice"] if missing > 0 else []
        doubled += [f"{extra} events are counted twice"] if extra > 0 else []
    assert accepted, "nothing was told before the kill"
    return Verdict(lost=tuple(lost), doubled=tuple(doubled), misordered=tuple(misordered))
