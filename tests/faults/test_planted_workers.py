"""The family of workers can fail: each planted bug of the protocol is reported by the same judge, with real
processes and a carrier that loses, doubles and delays."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from .workers.plants import PLANTS
from .workers.play import Site, run_plan
from .workers.verdict import has_doubled

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
DELAY = 1.5  # seconds that a message may take, at most
QUICK = 0.5  # where nothing depends on messages that overtake each other
# Seconds before a fault: here endings must be under way.
PAUSE = {"heard before recorded": (4 * QUICK, 8 * QUICK)}


@pytest.mark.parametrize("bug", PLANTS)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    """As soon as the facts show it, the run ends, and the judge judges it as it would any other."""
    delay = QUICK if bug in PAUSE else DELAY
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        shown = partial(has_doubled, folder)
        with Site(folder, "memory", seed, TASKS, patience=20.0, delay=delay, plant=bug) as site:
            found = run_plan(site, FAULTS[bug], 30.0, PAUSE.get(bug, (0.2, 1.0)), shown)
        if found.doubled:
            return
    raise AssertionError(f"{bug} was not found")
