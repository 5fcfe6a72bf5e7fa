"""The judge of the crash matrix is right about planted outcomes."""

from __future__ import annotations

from typing import Any

from benchmarks.crash_matrix import judge

TELLING = r'<told>"(?P<task>alpha|beta)" (?:completed|lost)'


def evidence(**given: dict[str, int] | dict[str, str]) -> Any:
    well = {"alpha": 1, "beta": 1}
    ended = {"alpha": "lost", "beta": "lost"}
    return judge.Evidence(
        **{"begun": well, "finished": {}, "told": well, "woken": well, "state": ended, **given}
    )


def counts(*rounds: Any) -> dict[str, int]:
    return judge.judged(rounds)._asdict()


def test_a_round_in_which_everything_is_told_once():
    assert counts(evidence()) == {
        "tasks": 2, "told": 2, "woken": 2, "told_twice": 0, "run_twice": 0, "finished": 0, "for_ever": 0,
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
