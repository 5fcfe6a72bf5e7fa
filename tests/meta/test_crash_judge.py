"""The judge of the crash matrix is right about planted outcomes."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.crash_matrix import judge

pytestmark = pytest.mark.docs

TELLING = r'<told>"(?P<task>alpha|beta)" (?:completed|lost)'


def evidence(**given: Any) -> Any:
    well = {"alpha": 1, "beta": 1}
    ended = {"alpha": "lost", "beta": "lost"}
    well_told = {"told": well, "woken": well, "heard": [["alpha"], ["alpha", "beta"]]}
    return judge.Evidence(**{"begun": well, "finished": {}, "state": ended, **well_told, **given})


def counts(*rounds: Any) -> dict[str, int]:
    return judge.judged(rounds)._asdict()


def test_a_round_in_which_everything_is_told_once():
    assert counts(evidence()) == {
        "tasks": 2, "told": 2, "woken": 2, "told_twice": 0, "run_twice": 0, "finished": 0, "for_ever": 0,
        "moved": 0,
    }  # fmt: skip


def test_an_ending_that_nobody_was_told_is_missing():
    found = counts(evidence(told={"alpha": 0, "beta": 1}, woken={}))
    assert (found["told"], found["woken"]) == (1, 0)


def test_an_ending_that_stands_in_one_question_twice_is_told_twice():
    found = counts(evidence(told={"alpha": 2, "beta": 1}))
    assert (found["told"], found["told_twice"]) == (2, 1)


def test_work_that_began_twice_was_run_twice():
    found = counts(evidence(begun={"alpha": 2, "beta": 3}, finished={"alpha": 1}))
    assert (found["run_twice"], found["finished"]) == (2, 1)


def test_a_task_that_is_still_called_running_runs_for_ever():
    found = counts(evidence(state={"alpha": "running", "beta": "Working"}), evidence(state={}))
    assert (found["tasks"], found["for_ever"]) == (4, 2)


def test_what_is_sent_again_with_each_question_is_not_told_again():
    said = ['<told>"alpha" lost', "main prompt"]
    assert judge.told_in([said, said, [*said, "again"]], TELLING) == {"alpha": 1, "beta": 0}


def test_two_messages_of_one_question_are_two_tellings():
    texts = ['<told>"alpha" completed and <told>"beta" lost', '<told>"alpha" completed']
    assert judge.told_in([texts], TELLING) == {"alpha": 2, "beta": 1}


def test_a_text_that_only_names_a_task_tells_nothing():
    assert judge.told_in([['"alpha" is running', "started beta"]], TELLING) == {"alpha": 0, "beta": 0}


def test_the_endings_of_questions_are_kept_in_their_order_where_they_change():
    first, second = '<told>"beta" lost', '<told>"alpha" lost'
    asked = [["main"], ["main", first], ["main", first], ["main", first, second]]
    assert judge.heard_in(asked, TELLING) == [["beta"], ["beta", "alpha"]]


def test_an_ending_that_is_gone_or_at_another_place_has_moved():
    assert counts(evidence(heard=[["alpha"], ["beta"]]))["moved"] == 1
    assert counts(evidence(heard=[["alpha", "beta"], ["beta", "alpha"]]))["moved"] == 2
    assert counts(evidence(heard=[["alpha", "beta"], []]))["moved"] == 2


def test_a_row_that_was_played_before_the_order_was_kept_says_nothing_of_it():
    assert counts(evidence(heard=[]), evidence())["moved"] is None
    assert counts(evidence(heard=[], told={"alpha": 0, "beta": 0}))["moved"] == 0
