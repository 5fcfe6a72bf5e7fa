"""A life of the family sources finds a planted bug: killed at a system call of a write, or to its end.

The families watch, remind and notify find more of them."""

from __future__ import annotations

import pytest

from . import sources, strace

pytestmark = pytest.mark.faults
BETWEEN_TWO_WRITES = (
    "watch_plants.cursor_before_the_notice",
    "watch_plants.cursor_after_the_notice",
    "remind_plants.cursor_before_the_notice",
)
IN_ANY_LIFE = ("remind_plants.occurrence_counted_twice", "notify_plants.joining_what_was_leased")


@pytest.mark.parametrize("plant", BETWEEN_TWO_WRITES)
def test_a_planted_bug_is_caught_by_a_kill(plant: str):
    if why_not := strace.missing():
        assert not strace.is_ci(), why_not
        pytest.skip(why_not)
    assert sources.is_caught(plant), f"{plant} was not noticed"


@pytest.mark.parametrize("plant", IN_ANY_LIFE)
def test_a_planted_bug_is_caught_without_a_kill(plant: str):
    assert sources.shows(plant), f"{plant} was not noticed"
