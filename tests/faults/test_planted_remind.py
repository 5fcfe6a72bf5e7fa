"""The family remind finds each planted bug."""

from __future__ import annotations

import pytest

from . import remind_plants, reminders

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("plant", remind_plants.PLANTS)
def test_a_planted_bug_is_caught(plant: str):
    found = reminders.run(7, 0, 1, 4, "", plant)
    assert found.lost + found.doubled + found.misordered > 0, f"{plant} was not noticed"
