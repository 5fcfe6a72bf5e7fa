"""The last hour in minutes: what ran at once, and how runs ended."""

from __future__ import annotations

import pytest

from meantime.kernel.lifecycle import Status
from meantime.kernel.minute_buckets import MINUTES, MinuteBuckets, of_journal
from meantime.kernel.model import Event

HOUR = 60.0 * MINUTES


def test_a_minute_has_the_most_that_ran_in_it():
    found = MinuteBuckets()
    for running, at in ((1, 0), (5, 10), (2, 20), (3, 61)):
        found.ran(running, at)
    assert found.peaks(125)[-3:] == [5, 3, 3]


def test_a_quiet_minute_has_what_ran_before_it():
    found = MinuteBuckets()
    found.ran(4, 0)
    assert found.peaks(HOUR * 3) == [4] * MINUTES
    found.ran(0, HOUR * 3)
    assert found.peaks(HOUR * 3 + 60) == [4] * (MINUTES - 2) + [4, 0]


def test_no_more_than_an_hour_is_kept():
    found = MinuteBuckets()
    for minute in range(1_000):
        found.ran(minute, minute * 60.0)
        found.ended(minute * 60.0, failed=minute % 2 == 0, seconds=1.0)
    assert len(found._buckets) == MINUTES + 1
    assert found.endings(999 * 60.0) == (30, 60)
    assert found.endings(999 * 60.0 + HOUR) == (0, 0)


def test_a_clock_that_is_set_back_adds_to_the_newest_minute():
    found = MinuteBuckets()
    found.ran(1, 600.0)
    found.ran(7, 60.0)
    assert found.peaks(600.0)[-1] == 7
    assert sum(found.peaks(600.0)) == 7


@pytest.mark.parametrize(("part", "expected"), [(0.5, 50.0), (0.95, 95.0), (1.0, 100.0)])
def test_percentiles_are_right_within_three_percent(part: float, expected: float):
    found = MinuteBuckets()
    for seconds in range(1, 101):
        found.ended(0.0, failed=False, seconds=float(seconds))
    (given,) = found.percentiles(0.0, part)
    assert given == pytest.approx(expected, rel=0.03)


def test_nothing_that_ended_has_no_percentile():
    assert MinuteBuckets().percentiles(0.0, 0.5, 0.95) == [None, None]


def event(kind: str, id: str, status: Status, at: float) -> Event:
    return Event(kind, id, "a", 1, status, at)


def test_the_journal_tells_a_later_owner_the_same():
    events = [
        event("ended", "before", Status.COMPLETED, 30),  # it began before the journal does
        event("submitted", "one", Status.RUNNING, 70),
        event("submitted", "two", Status.QUEUED, 80),
        event("started", "two", Status.RUNNING, 90),
        event("progress", "two", Status.RUNNING, 95),
        event("submitted", "never", Status.QUEUED, 96),
        event("ended", "never", Status.CANCELLED, 97),
        event("ended", "one", Status.FAILED, 130),
    ]
    found = of_journal(events, 1)
    assert found.peaks(180)[-4:] == [1, 2, 2, 1]
    assert found.endings(180) == (1, 3)
    assert found.percentiles(180, 0.5) == [pytest.approx(60.0, rel=0.03)]
    found.ended(190, failed=True, seconds=None)
    assert found.endings(190) == (2, 4)
