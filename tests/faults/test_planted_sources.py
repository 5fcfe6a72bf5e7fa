"""A kill at a system call of a write of the family sources finds a planted bug."""

from __future__ import annotations

import pytest

from . import sources, strace

pytestmark = pytest.mark.slow
PLANTS = ("watch_plants.cursor_before_the_notice",)  # the families watch, remind and notify have more


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_caught(plant: str):
    if why_not := strace.missing():
        assert not strace.is_ci(), why_not
        pytest.skip(why_not)
    assert sources.is_caught(plant), f"{plant} was not noticed"
