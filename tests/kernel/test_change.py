"""The one decision: what a move does to a task, and what it never does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from meantime.kernel.change import NOTHING, Disposition, Facts, amend, decide, ending, submit
from meantime.kernel.lifecycle import ACTIVE, ENDED, Move, Status, after
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Progress, Run, Task, TimedOut
from meantime.kernel.questions import Question, Reply

from .make import OUTCOMES, make_task

NOW = 170.0
BY_MOVE = {ending(outcome): outcome for outcome in OUTCOMES.values()}


def facts_for(task: Task, move: Move, **more: Any) -> Facts:
    """Facts that fit the move, as the runtime would give them."""
    run = task.run
    next_run = {
        Move.RESUME: Run(number=run.number + 1, queued_at=NOW),
        Move.RETRY: Run(number=run.number, attempt=run.attempt + 1, queued_at=NOW),
    }.get(move)
    question = Question(id="q1", text="Which one?") if move is Move.ASK else None
    reply = Reply(question="q1", text="the red one", by="user") if move is Move.ANSWER else None
    return Facts(
        outcome=BY_MOVE.get(move), by="user", next_run=next_run, question=question, reply=reply, **more
    )


def apply(task: Task, move: Move, **more: object):
    return decide(task, move, facts_for(task, move, **more), NOW)


# Submitting


@pytest.mark.behaviour("F1")
def test_a_submitted_task_replaces_nothing():
    change = submit(make_task(Status.QUEUED, created_at=90.0))
    assert (change.replaces, change.writes, change.ends) == (0, True, False)
    assert (change.event.kind, change.event.at) == ("submitted", 90.0)


# Going on


@pytest.mark.behaviour("L4")
def test_a_start_records_its_time():
    change = apply(make_task(Status.QUEUED), Move.START)
    assert (change.task.status, change.task.run.started_at) == (Status.RUNNING, NOW)


@pytest.mark.behaviour("L5")
def test_cancelling_says_who_when_and_why():
    change = decide(make_task(), Move.CANCEL, Facts(by="user", reason="wrong repo"), NOW)
    cancel = change.task.run.cancel
    assert change.task.status is Status.CANCELLING
    assert (cancel.by, cancel.at, cancel.reason) == ("user", NOW, "wrong repo")


@pytest.mark.behaviour("L5")
def test_cancelling_is_durable_and_not_yet_an_ending():
    change = apply(make_task(), Move.CANCEL)
    assert (change.durable, change.ends, change.task.outcome) == (True, False, None)


@pytest.mark.behaviour("L8")
def test_a_second_cancel_is_answered_and_changes_nothing():
    task = make_task(Status.CANCELLING)
    change = decide(task, Move.CANCEL, Facts(by="agent"), NOW)
    assert change.disposition is Disposition.ALREADY_CANCELLING
    assert (change.writes, change.task) == (False, task)


@pytest.mark.behaviour("L8")
def test_cancel_of_an_ended_task_says_it_has_ended():
    change = apply(make_task(Status.COMPLETED), Move.CANCEL)
    assert (change.disposition, change.writes) == (Disposition.ALREADY_ENDED, False)


@pytest.mark.behaviour("L1")
def test_an_illegal_move_changes_nothing():
    task = make_task(Status.QUEUED)
    change = apply(task, Move.ANSWER)
    assert (change.disposition, change.writes, change.task) == (Disposition.ILLEGAL, False, task)


@pytest.mark.behaviour("L28")
def test_a_question_and_its_answer_keep_the_run():
    waiting = apply(make_task(), Move.ASK).task
    running = apply(waiting, Move.ANSWER).task
    assert (waiting.status, running.status) == (Status.WAITING, Status.RUNNING)
    assert (waiting.question.text, running.question) == ("Which one?", None)
    assert [(said.text, said.run) for said in running.answers] == [("the red one", 1)]
    assert running.run == make_task().run


@pytest.mark.behaviour("L28")
def test_an_answer_to_another_question_changes_nothing():
    waiting = decide(make_task(), Move.ASK, Facts(question=Question(id="q1", text="Which?")), NOW).task
    change = decide(waiting, Move.ANSWER, Facts(reply=Reply(question="q2", text="red")), NOW)
    assert (change.writes, change.disposition) == (False, Disposition.ILLEGAL)


# Ending


@pytest.mark.behaviour("L2")
@pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
def test_an_ending_keeps_the_outcome_and_the_time(outcome):
    change = decide(make_task(), ending(outcome), Facts(outcome=outcome), NOW)
    assert change.task.outcome == outcome
    assert (change.task.run.ended_at, change.task.run.duration) == (NOW, 60.0)
    assert (change.ends, change.durable, change.event.kind) == (True, True, "ended")


@pytest.mark.behaviour("L2")
@pytest.mark.parametrize(("status", "outcome"), OUTCOMES.items(), ids=OUTCOMES)
def test_the_outcome_names_its_own_ending(status, outcome):
    assert after(Status.RUNNING, ending(outcome)) is status


@pytest.mark.behaviour("L2")
def test_the_duration_is_what_the_monotonic_clock_said():
    assert apply(make_task(), Move.COMPLETE, elapsed=2.5).task.run.duration == 2.5


@pytest.mark.behaviour("L2")
def test_a_clock_that_went_back_gives_no_negative_duration():
    assert decide(make_task(), Move.FAIL, Facts(outcome=Failed("x")), 5.0).task.run.duration == 0.0
    assert apply(make_task(), Move.COMPLETE, elapsed=-1.0).task.run.duration == 0.0


@pytest.mark.behaviour("L7")
def test_finished_first_wins_over_a_cancel():
    cancelling = apply(make_task(), Move.CANCEL).task
    done = apply(cancelling, Move.COMPLETE).task
    assert done.status is Status.COMPLETED
    assert done.run.cancel == cancelling.run.cancel  # the request stays on record


@pytest.mark.behaviour("L5")
def test_a_queued_task_that_is_cancelled_ends_with_who_and_why():
    change = decide(make_task(Status.QUEUED), Move.CANCEL, Facts(by="user", reason="late"), NOW)
    assert change.task.outcome == Cancelled("user", "late")
    assert change.task.run.cancel.at == NOW
    assert change.ends


def test_an_ending_without_an_outcome_is_a_mistake_of_ours():
    with pytest.raises(AssertionError, match="needs an outcome"):
        decide(make_task(), Move.COMPLETE, NOTHING, NOW)


@pytest.mark.behaviour("L1")
def test_a_second_ending_is_a_no_op_that_says_so():
    task = apply(make_task(), Move.COMPLETE).task
    change = apply(task, Move.FAIL)
    assert change.disposition is Disposition.ALREADY_ENDED
    assert (change.writes, change.ends, change.event, change.task) == (False, False, None, task)


# What comes late


@pytest.mark.behaviour("N22")
def test_a_late_result_is_kept_beside_the_ending():
    change = apply(make_task(Status.CANCELLED), Move.COMPLETE, late="whole result")
    assert change.task.late_result == "whole result"
    assert change.task.status is Status.CANCELLED
    assert change.task.outcome == OUTCOMES[Status.CANCELLED]
    assert (change.writes, change.ends, change.disposition) == (True, False, Disposition.ALREADY_ENDED)


@pytest.mark.behaviour("N22")
def test_only_the_first_late_result_is_kept():
    task = make_task(Status.CANCELLED, late_result="first")
    change = apply(task, Move.COMPLETE, late="second")
    assert (change.writes, change.task.late_result) == (False, "first")


@pytest.mark.behaviour("N22")
def test_what_came_after_the_deadline_ends_timed_out_with_a_late_result():
    change = apply(make_task(Status.CANCELLING), Move.TIME_OUT, late=[1, 2])
    assert (change.task.status, change.task.late_result) == (Status.TIMED_OUT, [1, 2])


@pytest.mark.behaviour("L1")
@pytest.mark.parametrize("fence", [(1, 2), (2, 1), (3, 2)])
def test_a_stale_run_does_not_end_the_current_one(fence):
    task = make_task(run=Run(number=2, attempt=2, started_at=110.0))
    change = apply(task, Move.COMPLETE, run=fence)
    assert (change.writes, change.task) == (False, task)


@pytest.mark.behaviour("L1")
def test_the_current_run_passes_the_fence():
    task = make_task(run=Run(number=2, attempt=3, started_at=110.0))
    assert apply(task, Move.COMPLETE, run=(2, 3)).task.status is Status.COMPLETED


@pytest.mark.behaviour("N22")
def test_a_stale_runs_late_result_is_not_given_to_the_new_run():
    """Run 1 was abandoned, run 2 completed; then run 1 comes back after all."""
    task = make_task(Status.COMPLETED, run=Run(number=2, started_at=110.0))
    assert apply(task, Move.COMPLETE, run=(1, 1), late="of run 1").task.late_result is None


# New runs


@pytest.mark.behaviour("L16")
@pytest.mark.parametrize("status", sorted(ENDED))
def test_any_ending_can_be_resumed(status):
    change = apply(make_task(status), Move.RESUME)
    assert (change.task.status, change.task.run.number) == (Status.QUEUED, 2)


@pytest.mark.behaviour("L20")
def test_a_resume_archives_the_ended_run():
    task = make_task(Status.FAILED)
    assert apply(task, Move.RESUME).archives == task


@pytest.mark.behaviour("L20")
def test_resumes_are_counted():
    task = apply(make_task(Status.COMPLETED), Move.RESUME).task
    assert (task.resumed, task.resume_count) == (True, 1)


@pytest.mark.behaviour("L16")
def test_a_new_run_starts_clean():
    ended = make_task(Status.CANCELLED, late_result=1, hidden=True, progress=Progress(percent=50))
    task = apply(ended, Move.RESUME).task
    assert (task.outcome, task.progress, task.late_result, task.hidden) == (None, None, None, False)


@pytest.mark.behaviour("L18")
def test_a_second_resume_is_illegal_while_the_run_goes_on():
    resumed = apply(make_task(Status.COMPLETED), Move.RESUME).task
    assert apply(resumed, Move.RESUME).disposition is Disposition.ILLEGAL


@pytest.mark.behaviour("L21")
def test_each_run_ends_once_more():
    resumed = apply(make_task(Status.COMPLETED), Move.RESUME).task
    running = apply(resumed, Move.START).task
    assert apply(running, Move.COMPLETE).ends


@pytest.mark.behaviour("L27")
def test_a_retry_is_the_same_run_and_archives_nothing():
    change = apply(make_task(), Move.RETRY)
    assert (change.task.run.number, change.task.run.attempt, change.archives) == (1, 2, None)
    assert (change.task.status, change.ends) == (Status.QUEUED, False)


@pytest.mark.parametrize(("status", "move"), [(Status.FAILED, Move.RESUME), (Status.RUNNING, Move.RETRY)])
def test_a_new_run_must_be_given(status, move):
    with pytest.raises(AssertionError, match="needs the next run"):
        decide(make_task(status), move, NOTHING, NOW)


# Changes that are no moves


@pytest.mark.behaviour("I1")
def test_an_amendment_keeps_the_status_and_may_be_lost_in_a_power_cut():
    change = amend(make_task(), NOW, event="progress", progress=Progress(percent=40))
    assert (change.task.status, change.task.progress.percent) == (Status.RUNNING, 40)
    assert (change.durable, change.ends, change.event.kind) == (False, False, "progress")


@pytest.mark.behaviour("I1")
def test_an_amendment_without_a_name_is_no_event():
    assert amend(make_task(), NOW, hidden=True).event is None


@pytest.mark.behaviour("H19")
def test_an_event_says_what_happened_to_which_run():
    event = apply(make_task(Status.QUEUED), Move.START).event
    assert (event.kind, event.task_id, event.thread, event.run) == ("started", "t_2qx7m4kd9a", "conv-1", 1)
    assert (event.status, event.at) == (Status.RUNNING, NOW)


# Whatever happens, in whatever order

lates = st.none() | st.text(max_size=3)
steps = st.lists(st.tuples(st.sampled_from(Move), lates, st.booleans()), max_size=40)
stale_runs = st.tuples(st.integers(0, 4), st.integers(0, 4))
starts = st.sampled_from([Status.QUEUED, Status.RUNNING])


def walk(status: Status, moves: list[tuple[Move, object, bool]]):
    """Each decision with the task before it."""
    task = make_task(status)
    for move, late, fenced in moves:
        fence = (task.run.number, task.run.attempt) if fenced else None
        change = apply(task, move, late=late, run=fence)
        yield task, move, change
        task = change.task


@pytest.mark.behaviour("L1")
@given(starts, steps)
def test_ended_is_final_except_for_a_resume(status, moves):
    for before, move, change in walk(status, moves):
        if before.ended and move is not Move.RESUME:
            assert change.task.status is before.status
            assert change.task.outcome == before.outcome
            assert change.task.run == before.run
            assert change.disposition is Disposition.ALREADY_ENDED


@pytest.mark.behaviour("L1")
@given(starts, steps)
def test_the_version_grows_by_one_with_each_written_change(status, moves):
    for before, _, change in walk(status, moves):
        if change.writes:
            assert change.replaces == before.version
            assert change.task.version == before.version + 1
        else:
            assert change.task == before
            assert change.event is None


@pytest.mark.behaviour("L1")
@given(starts, steps)
def test_every_move_goes_by_the_table(status, moves):
    for before, move, change in walk(status, moves):
        if change.disposition is Disposition.APPLIED:
            assert change.task.status is after(before.status, move)
        else:
            assert change.task.status is before.status


@pytest.mark.behaviour("L21")
@given(starts, steps)
def test_a_run_ends_exactly_once(status, moves):
    endings: Counter[int] = Counter()
    for before, _, change in walk(status, moves):
        if change.ends:
            endings[before.run.number] += 1
            assert before.status in ACTIVE
            assert change.task.ended
        runs_so_far = change.task.run.number if change.task.ended else change.task.run.number - 1
        assert endings == dict.fromkeys(range(1, runs_so_far + 1), 1)


@pytest.mark.behaviour("L1")
@given(starts, steps)
def test_an_outcome_is_there_exactly_when_it_has_ended(status, moves):
    for _, _, change in walk(status, moves):
        assert (change.task.outcome is not None) is change.task.ended


@pytest.mark.behaviour("L1")
@given(st.sampled_from(Status), st.sampled_from(Move), lates, stale_runs)
@example(Status.COMPLETED, Move.COMPLETE, "late", (1, 1))
def test_a_stale_fence_never_changes_anything(status, move, late, fence):
    task = make_task(status, run=Run(number=2, attempt=2, started_at=110.0))
    if fence == (2, 2):
        fence = (2, 1)
    change = apply(task, move, late=late, run=fence)
    assert (change.writes, change.ends, change.task) == (False, False, task)


@pytest.mark.behaviour("L1")
@given(st.sampled_from(Status), st.sampled_from(Move), stale_runs)
def test_a_stale_fence_never_makes_a_move(status, move, fence):
    task = make_task(status, run=Run(number=5, attempt=5, started_at=110.0))
    change = apply(task, move, run=fence)
    assert (change.writes, change.ends, change.task) == (False, False, task)


@pytest.mark.behaviour("L2")
@given(starts, steps, st.floats(allow_nan=True) | st.none())
def test_a_duration_is_never_negative(status, moves, elapsed):
    task = make_task(status)
    for move, _, _ in moves:
        task = apply(task, move, elapsed=elapsed).task
        assert (task.run.duration or 0.0) >= 0.0


def test_every_kind_of_outcome_has_its_move():
    kinds = (Completed, Failed, Cancelled, TimedOut, Lost)
    assert {type(outcome) for outcome in BY_MOVE.values()} == set(kinds)


def test_an_unwritten_change_replaces_nothing():
    change = apply(make_task(Status.LOST), Move.COMPLETE)
    assert (change.replaces, change.writes) == (-1, False)
    assert replace(change, replaces=0).writes  # 0 creates
