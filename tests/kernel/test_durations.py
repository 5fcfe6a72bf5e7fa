"""Durations for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.durations import duration


@pytest.mark.behaviour("I13")
@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (45, "45s"),
        (59.9, "59s"),
        (60, "1m 0s"),
        (150, "2m 30s"),
        (3_599, "59m 59s"),
        (3_600, "1h 0m 0s"),
        (4_545, "1h 15m 45s"),
        (90_000, "25h 0m 0s"),
    ],
)
def test_a_duration_is_shown_in_hours_minutes_and_seconds(seconds, text):
    assert duration(seconds) == text


@pytest.mark.behaviour("I13")
def test_a_clock_that_went_back_shows_zero():
    assert duration(-5) == "0s"


@pytest.mark.behaviour("I13")
@given(st.integers(0, 10**9))
def test_nothing_is_lost_but_fractions(seconds):
    units = {"h": 3_600, "m": 60, "s": 1}
    assert sum(int(part[:-1]) * units[part[-1]] for part in duration(seconds).split()) == seconds


@pytest.mark.behaviour("I13")
@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_a_duration_that_is_no_number_still_gives_a_text(seconds):
    """A notice must render whatever a runner measured."""
    assert duration(seconds)
