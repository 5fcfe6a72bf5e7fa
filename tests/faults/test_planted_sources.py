"""A kill at a system call of their writes finds planted bugs of watches, events, reminders, late starts."""

from __future__ import annotations

import pytest

from . import sources, strace

pytestmark = pytest.mark.slow
PLANTS = (
    "watch_plants.cursor_before_the_notice",
    "watch_plants.cursor_after_the_notice",
    "remind_plants.occurrence_counted_twice",
    "notify_plants.joining_what_was_leased",
    "source_plants.cancelled_starts_run",
)


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_bug_is_caught(plant: str):
    if why_not := strace.missing():
        assert not strace.is_ci(), why_not
        pytest.skip(why_not)
    assert sources.is_caught(plant), f"{plant} was not noticed"
