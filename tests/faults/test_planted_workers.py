"""The family of workers can fail: each planted bug of the protocol is reported by the same judge, with real
processes and a carrier that loses, doubles and delays."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from .workers.plants import PLANTS
from .workers.play import Site, run_plan
from .workers.verdict import has_doubled

pytestmark = [pytest.mark.faults, pytest.mark.xdist_group("workers")]
SEEDS = range(3)  # the first is enough, nearly always
TASKS = 80
FAULTS = {
    "begin before grant": [],
    "forget the journal": ["kill at work"] * 3,
    "trust alive": [],
    "offer while queued": [],
    "heard before recorded": ["owner at an end"] * 3,
}
SLOTS = {"offer while queued": 2}  # of a worker, where offers have to wait in the queue
STUCK = 60.0  # seconds in which nothing is told, where a planted bug keeps a task from its end
DELAY = 1.5  # seconds that a message may take, at most
QUICK = 0.5  # where nothing depends on messages that overtake each other


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    """As soon as the facts show it, the run ends, and the judge judges it as it would any other."""
    delay = QUICK if bug == "heard before recorded" else DELAY
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        shown = partial(has_doubled, folder)
        with Site(folder, "memory", seed, TASKS, delay=delay, plant=bug, slots=SLOTS.get(bug, 0)) as site:
            found = run_plan(site, FAULTS[bug], STUCK, shown)
        if found.doubled:
            return
    raise AssertionError(f"{bug} was not found")
