"""Family adapters: kill -9 of conversations with agents of frameworks, and what their models were shown."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.waiting import LIMIT

from .adapter_sites import ADAPTERS, FRAMEWORKS, ROOT
from .judge import Fact, Tally, Told, Verdict, judge, read_facts
from .trial import side_by_side, trial

THREAD = "c"


def missing() -> str:
    ready = (FRAMEWORKS / ".ready").exists()
    return "" if ready else "make frameworks installs the frameworks"


def run(
    seed: int, kills: int, reproduce: str, plant: str = "", adapters: Sequence[str] = tuple(ADAPTERS)
) -> Tally:
    """Each adapter has a conversation that is killed `kills` times in a row."""
    tally = Tally("kill of agents of frameworks that talk", reproduce)
    rng = random.Random(seed)
    side_by_side(
        [(name, rng.randrange(1 << 30)) for name in adapters], lambda job: _lives(tally, *job, kills, plant)
    )
    return tally


def _lives(tally: Tally, name: str, seed: int, kills: int, plant: str) -> None:
    def make(folder: Path) -> int:
        order = [
            ADAPTERS[name].python,
            "-m",
            "tests.faults.adapter_lives",
            name,
            folder,
            str(seed),
            str(kills),
        ]
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        ended = subprocess.run(
            [*order, *([plant] if plant else [])],
            cwd=ROOT, env=environ, capture_output=True, text=True, check=False,
            timeout=2 * (kills + 2) * LIMIT,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr[-2_000:]
        return kills

    trial(tally, f"{name}, seed {seed}", make, lambda folder: verdict(read_facts(folder / "ledger.jsonl")))


def verdict(facts: Sequence[Fact]) -> Verdict:
    """The last request shows the whole conversation; those before it show what it was."""
    requests = [fact.note.split() for fact in facts if fact.what == "shown"]
    assert requests, "no model was ever asked"
    found = judge(facts, {THREAD: [Told(id) for id in requests[-1]]})
    return Verdict(
        (*found.lost, *_forgotten(facts)),
        (*found.doubled, *_twice(requests[:-1])),
        found.misordered,
    )


def _twice(requests: Iterable[Sequence[str]]) -> Iterable[str]:
    for number, ids in enumerate(requests):
        for id, count in Counter(ids).items():
            if count > 1:
                yield f"request {number} shows {id} {count} times"


def _forgotten(facts: Iterable[Fact]) -> Iterable[str]:
    """A turn that came to its end is a beginning of every conversation that follows."""
    settled: list[str] = []
    shown: list[str] = []
    for fact in facts:
        if fact.what == "shown":
            shown = fact.note.split()
            if shown[: len(settled)] != settled:
                yield f"life {fact.id} shows {shown[: len(settled)]} in place of {settled}, which was settled"
                return
        elif fact.what == "said":
            settled = shown
