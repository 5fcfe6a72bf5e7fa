"""The family watch finds each planted bug, and nothing where there is none."""

from __future__ import annotations

import pytest

from . import watch_plants, watches

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("plant", watch_plants.PLANTS)
def test_a_planted_bug_is_caught(plant: str):
    found = watches.run(7, 2, 3, "", plant)
    assert found.lost + found.doubled + found.misordered > 0, f"{plant} was not noticed"
