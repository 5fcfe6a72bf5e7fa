"""The translator is total: every status of the kernel has a word of seed 001, and every word its statuses."""

from __future__ import annotations

import itertools

import pytest

from meantime.kernel.durations import iso
from meantime.kernel.lifecycle import ENDED, Status
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Run, Task, TimedOut, Work
from meantime.surfaces.http.task_encoding import prompt_of, statuses_of_word, wire_task, word, word_of, words

# The column '000, 001' of the design's table; a task under resume is "resumed" until its run has ended.
TABLE = {
    (Status.QUEUED, 1): "running",
    (Status.QUEUED, 2): "resumed",
    (Status.RUNNING, 1): "running",
    (Status.RUNNING, 2): "resumed",
    (Status.WAITING, 1): "running",
    (Status.WAITING, 2): "resumed",
    (Status.CANCELLING, 1): "running",
    (Status.CANCELLING, 2): "resumed",
    (Status.COMPLETED, 1): "completed",
    (Status.COMPLETED, 2): "completed",
    (Status.FAILED, 1): "error",
    (Status.FAILED, 2): "error",
    (Status.CANCELLED, 1): "cancelled",
    (Status.CANCELLED, 2): "cancelled",
    (Status.TIMED_OUT, 1): "error",
    (Status.TIMED_OUT, 2): "error",
    (Status.LOST, 1): "error",
    (Status.LOST, 2): "error",
}
OUTCOMES = {
    Status.COMPLETED: Completed("done"),
    Status.FAILED: Failed("it broke", detail="where"),
    Status.CANCELLED: Cancelled("user", "enough"),
    Status.TIMED_OUT: TimedOut(90.0),
    Status.LOST: Lost("the process died"),
}


def a_task(status: Status, run: int = 1, **fields: object) -> Task:
    given = {"work": Work("call", "a:b"), "outcome": OUTCOMES.get(status), **fields}
    return Task(id="t_1", thread="a", status=status, run=Run(number=run, queued_at=1.0), **given)


@pytest.mark.behaviour("H7", "R1")
@pytest.mark.parametrize(("status", "run"), list(itertools.product(Status, (1, 2))))
def test_every_status_has_its_word(status: Status, run: int):
    task = a_task(status, run)
    assert word_of(task) == TABLE[status, run]
    assert wire_task(task).status == TABLE[status, run]
    assert wire_task(task).state == status.value


@pytest.mark.behaviour("H7")
@pytest.mark.parametrize("asked", [*itertools.combinations(words(), 1), *itertools.combinations(words(), 2)])
def test_a_word_asks_for_exactly_what_is_shown_with_it(asked: tuple[str, ...]):
    statuses, resumed = statuses_of_word(asked)
    for (status, run), shown in TABLE.items():
        later = status in ENDED or resumed is None or resumed == (run > 1)
        assert (status in statuses and later) == (shown in asked), (status, run)


@pytest.mark.behaviour("H8")
@pytest.mark.parametrize("status", sorted(ENDED))
def test_errors_are_told_for_the_endings_that_are_errors(status: Status):
    error = wire_task(a_task(status)).error
    assert (error is not None) == (word(status, False) == "error")


@pytest.mark.behaviour("H8")
@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Completed("done"), 0), (Failed("x", exit_code=3), 3), (Failed("x", signal=9), None), (None, None),
     (Cancelled("user", ""), None), (TimedOut(1.0), None), (Lost("gone"), None)],
)  # fmt: skip
def test_a_command_that_ended_by_itself_has_an_exit_code(outcome: object, code: int | None):
    task = a_task(Status.RUNNING, work=Work("shell", "true"), outcome=outcome)
    assert wire_task(task).exit_code == code
    function = a_task(Status.COMPLETED)
    assert wire_task(function).exit_code is None


@pytest.mark.behaviour("H8")
def test_what_the_next_owner_cannot_start_says_so():
    command = Work("shell", "env", faithful=False)
    assert not wire_task(a_task(Status.QUEUED, work=command)).restartable
    assert wire_task(a_task(Status.QUEUED)).restartable
    # A function of another process is still there when that process connects again.
    assert wire_task(
        a_task(Status.QUEUED, work=Work("call", "a:b", faithful=False), executor="x")
    ).restartable


@pytest.mark.behaviour("H8")
def test_a_timeout_says_how_long():
    assert wire_task(a_task(Status.TIMED_OUT)).error == "Timed out after 1m 30s."


@pytest.mark.behaviour("H8")
@pytest.mark.parametrize(
    ("work", "prompt"),
    [
        (Work("agent", "explore", {"prompt": "look"}), "look"),
        (Work("shell", "ls", {"command": "ls -l"}), "ls -l"),
        (Work("shell", "ls", {"command": ["ls", "a b"]}), "ls 'a b'"),
        (Work("call", "a:b", {"args": [1]}), ""),
        (Work("call", "a:b", [1]), ""),
        (Work("call", "a:b"), ""),
    ],
)
def test_the_prompt_is_what_the_work_was_told(work: Work, prompt: str):
    assert prompt_of(a_task(Status.RUNNING, work=work)) == prompt


@pytest.mark.behaviour("H8")
@pytest.mark.parametrize("seconds", [None, 0.0, 1e300, -1e300])
def test_a_time_that_is_none_is_null(seconds: float | None):
    assert iso(seconds) is None


@pytest.mark.behaviour("H8")
def test_times_are_iso_8601_in_utc():
    assert iso(1_700_000_000.25) == "2023-11-14T22:13:20.250Z"
