"""The family of workers can fail: each planted bug of the protocol is reported by the same judge, with real
processes and a carrier that loses, doubles and delays."""

from __future__ import annotations

from pathlib import Path

import pytest

from .workers.plants import PLANTS
from .workers.play import Site, run_plan

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workers")]
SEEDS = range(3)  # the first is enough, nearly always
TASKS = 80
FAULTS = {
    "begin before grant": [],
    "forget the journal": ["kill", "kill", "kill"],
    "trust alive": [],
    "offer while queued": [],
    "heard before recorded": ["owner", "owner", "owner"],
}
# Seconds before a fault: here endings must be under way, and each message may take as long as DELAY.
DELAY = 1.5
PAUSE = {"heard before recorded": (2 * DELAY, 4 * DELAY)}


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        with Site(folder, "memory", seed, TASKS, patience=20.0, delay=DELAY, plant=bug) as site:
            found = run_plan(site, FAULTS[bug], 30.0, PAUSE.get(bug, (0.2, 1.0)))
        if found.doubled:
            return
    raise AssertionError(f"{bug} was not found")
