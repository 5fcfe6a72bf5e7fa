"""A wake budget: rounds are counted, rests grow, and somebody's own turn ends it."""

from __future__ import annotations

import pytest

from meantime.kernel.wake_budget import MOST, WakeBudget, Wakes

BUDGET = WakeBudget(rounds=3, seconds=100.0, longest=20.0)


def go_round(wakes: Wakes, now: float) -> None:
    wakes.started("t")
    wakes.woken("t", now)
    wakes.entered("t")


def test_within_the_budget_nobody_rests():
    wakes = Wakes(BUDGET)
    for now in range(2):
        go_round(wakes, float(now))
    assert wakes.rest("t", 1.0) == 0
    assert wakes.resting(1.0) == []


def test_each_round_more_doubles_the_rest_up_to_the_longest():
    wakes, now, rests = Wakes(BUDGET), 0.0, []
    for _ in range(10):
        now += wakes.rest("t", now)
        go_round(wakes, now)
        rests.append(wakes.rest("t", now))
    assert rests == [0, 0, 1, 2, 4, 8, 16, 20, 20, 20]


def test_what_was_long_ago_does_not_count():
    wakes = Wakes(BUDGET)
    for _ in range(5):
        go_round(wakes, 0.0)
    assert wakes.rest("t", 0.0) == 4
    assert wakes.rest("t", 100.0) == 0


def test_endings_of_what_runs_anyhow_are_no_rounds():
    """A hundred tasks of one batch that end one by one: nobody started anything in between."""
    wakes = Wakes(BUDGET)
    wakes.started("t")
    for now in range(100):
        wakes.woken("t", float(now))
        wakes.entered("t")
    assert wakes.rest("t", 100.0) == 0


def test_a_turn_that_nobody_was_woken_for_ends_it():
    wakes = Wakes(BUDGET)
    for _ in range(6):
        go_round(wakes, 0.0)
    assert wakes.rest("t", 0.0) > 0
    wakes.entered("t")
    assert wakes.rest("t", 0.0) == 0


def test_a_thread_pays_for_itself_alone():
    wakes = Wakes(BUDGET)
    for _ in range(6):
        go_round(wakes, 0.0)
    assert wakes.rest("u", 0.0) == 0
    assert wakes.resting(0.0) == ["t"]


@pytest.mark.parametrize("rounds", [-1, 0])
def test_no_limit_and_the_least(rounds: int):
    wakes = Wakes(WakeBudget(rounds=rounds))
    go_round(wakes, 0.0)
    assert (wakes.rest("t", 0.0) == 0) is (rounds == -1)


@pytest.mark.behaviour("P10")
def test_it_knows_so_many_threads_and_no_more():
    wakes = Wakes(BUDGET)
    for number in range(MOST + 10):
        wakes.started(f"t{number}")
        wakes.woken(f"t{number}", 0.0)
    assert all(len(known) == MOST for known in (wakes._rounds, wakes._woken))
