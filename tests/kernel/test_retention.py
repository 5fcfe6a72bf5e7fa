"""What stays in a thread's listing. Never evicted: what was not told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.retention import Retention, hot

endings = st.lists(st.booleans()).map(lambda told: list(enumerate(told)))


def all_told(count: int) -> list[tuple[int, bool]]:
    return [(number, True) for number in range(count)]


def test_I14_a_thread_lists_twenty_ended_tasks():
    assert Retention().hot == 20
    assert hot(all_told(20), 20) == list(range(20))


def test_I14_the_twenty_first_leaves_the_listing():
    assert hot(all_told(21), 20) == list(range(20))


def test_I14_an_untold_ending_stays_however_old():
    assert hot([(0, True), (1, True), (2, False), (3, True)], 1) == [0, 2]


def test_I14_nothing_kept_still_keeps_the_untold():
    assert hot([(0, True), (1, False)], 0) == [1]


def test_I14_no_endings_give_an_empty_listing():
    assert hot([], 20) == []


@given(endings, st.integers(0, 30))
def test_I14_untold_endings_are_never_evicted(newest_first, keep):
    kept = hot(newest_first, keep)
    assert {task for task, told in newest_first if not told} <= set(kept)


@given(endings, st.integers(0, 30))
def test_I14_the_newest_are_kept_in_their_order(newest_first, keep):
    kept = hot(newest_first, keep)
    assert kept == sorted(kept)
    assert kept[:keep] == [task for task, _ in newest_first[:keep]]


@given(endings, st.integers(0, 30))
def test_I14_no_more_is_kept_than_needed(newest_first, keep):
    untold = sum(not told for _, told in newest_first[keep:])
    assert len(hot(newest_first, keep)) == min(keep, len(newest_first)) + untold
