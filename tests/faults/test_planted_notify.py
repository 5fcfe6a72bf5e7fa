"""The family notify finds each planted bug, and nothing where there is none."""

from __future__ import annotations

import pytest

from . import notifications, notify_plants

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("plant", sorted(notify_plants.PLANTS))
def test_a_planted_bug_is_caught(plant: str):
    found = notifications.run(7, 2, 2, "", plant, notify_plants.PLANTS[plant])
    assert found.lost + found.doubled + found.misordered > 0, f"{plant} was not noticed"
