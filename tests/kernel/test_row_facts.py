"""One row of a list: the line that says what a task does now, and when it counts as silent."""

from __future__ import annotations

import pytest

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, CancelRequest, Claim, Completed, Failed, Progress, Run, Work
from meantime.kernel.questions import Question
from meantime.kernel.row_facts import LINE, RowFacts, last_event_at, now_line, silent_after

from .make import make_task

NOTHING = RowFacts(id="t_2qx7m4kd9a")


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        (NOTHING, "waits for a slot"),
        (RowFacts(id="t", slots_used=5, slots_total=5, slots_of="agent"), "waits for a slot · 5 of 5 agents"),
        (RowFacts(id="t", slots_used=50, slots_total=50), "waits for a slot · 50 of 50"),
        (RowFacts(id="t", slots_used=1, slots_total=1, slots_of="mine"), "waits for a slot · 1 of 1 mine"),
    ],
)
def test_a_queued_task_says_which_limit_it_waits_for(facts: RowFacts, line: str):
    assert now_line(make_task(Status.QUEUED), facts) == line


def test_a_waiting_task_shows_its_question():
    asking = make_task(Status.WAITING, question=Question(id="q", text="Delete\nit?"))
    assert now_line(asking, NOTHING) == "Delete it?"
    assert now_line(make_task(Status.WAITING), RowFacts(id="t", said="thinking")) == "thinking"


def test_a_task_that_is_being_cancelled_says_why():
    assert now_line(make_task(Status.CANCELLING), NOTHING) == "stopping"
    run = Run(cancel=CancelRequest("user", 1.0, "enough"))
    assert now_line(make_task(Status.CANCELLING, run=run), NOTHING) == "stopping: enough"


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (None, "last output"),
        (Progress(), "last output"),
        (Progress(message="page 3", phase="reading"), "page 3"),
        (Progress(phase="reading"), "reading"),
        (Progress(message="page 3", last_tools=("grep",)), "grep · page 3"),
        (Progress(last_tools=("grep",), tool_calls={"grep": 1}), "grep"),
        (Progress(message="grep", last_tools=("grep",), tool_calls={"grep": 4}), "grep ×4"),
    ],
)
def test_a_running_task_says_what_it_does_or_what_it_printed_last(progress: Progress | None, line: str):
    assert now_line(make_task(progress=progress), RowFacts(id="t", said="last output")) == line


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (Status.COMPLETED, "done"),
        (Status.FAILED, "it broke"),
        (Status.TIMED_OUT, "timed out after 1m 0s"),
        (Status.LOST, "the process is gone"),
        (Status.CANCELLED, "enough"),
    ],
)
def test_an_ended_task_says_how_it_ended(status: Status, line: str):
    assert now_line(make_task(status), NOTHING) == line


def test_a_cancelled_task_without_a_reason_says_by_whom():
    assert (
        now_line(make_task(Status.CANCELLED, outcome=Cancelled("user", "")), NOTHING) == "cancelled by user"
    )
    assert now_line(make_task(Status.CANCELLED, outcome=Cancelled("", "")), NOTHING) == ""


def test_a_command_shows_its_last_line_and_other_work_its_first():
    outcome = Completed("one\ntwo\n\n")
    command = make_task(Status.COMPLETED, work=Work("shell", "make"), outcome=outcome)
    assert now_line(command, NOTHING) == "two"
    assert now_line(make_task(Status.COMPLETED, outcome=outcome), NOTHING) == "one"


def test_the_line_is_bounded():
    outcome = Completed("x" * 1_000_000)
    assert len(now_line(make_task(Status.COMPLETED, outcome=outcome), NOTHING)) <= LINE


def test_the_last_event_is_a_change_progress_or_output():
    task = make_task(updated_at=5.0, progress=Progress(updated_at=7.0))
    assert last_event_at(task, NOTHING) == 7.0
    assert last_event_at(task, RowFacts(id="t", said_at=9.0)) == 9.0
    assert last_event_at(make_task(updated_at=5.0), NOTHING) == 5.0


def test_work_that_never_reports_is_silent_only_once_it_takes_longer_than_usual():
    task = make_task(work=Work("shell", "make"))
    assert silent_after(task, NOTHING) == 30.0
    assert silent_after(task, RowFacts(id="t", usual_ms=90_000)) == 90.0
    assert silent_after(task, RowFacts(id="t", usual_ms=90_000, said_at=1.0)) == 30.0
    assert silent_after(make_task(), NOTHING) == 60.0


def test_a_watch_that_finds_nothing_is_never_silent():
    assert silent_after(make_task(work=Work("watch", "port 80")), RowFacts(id="t", usual_ms=5)) == 0.0


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (
            Failed("Exit code 2.", exit_code=2, partial="one\nmake: *** [all] Error 2\n"),
            "exit 2 · make: *** [all] Error 2",
        ),
        (Failed("Exit code 2.", exit_code=2), "Exit code 2."),
        (Failed("There is no folder /x."), "There is no folder /x."),
    ],
)
def test_a_failed_command_shows_its_exit_code_and_the_last_line_that_it_printed(outcome: Failed, line: str):
    assert now_line(make_task(Status.FAILED, work=Work("shell", "make"), outcome=outcome), NOTHING) == line


def test_placed_work_names_its_pool_and_then_its_worker():
    assert now_line(make_task(Status.QUEUED, place="pool:gpu"), NOTHING) == "waits for a worker of pool:gpu"
    placed = Run(started_at=110.0, claim=Claim("gpu-1", "home", "boot", "n0nce"))
    assert now_line(make_task(run=placed), NOTHING) == "on gpu-1"
    assert now_line(make_task(run=placed), RowFacts(id="t", said="epoch 3")) == "on gpu-1 · epoch 3"
