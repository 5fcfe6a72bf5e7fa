"""How a run ended, named from what its runner reported and what it had been asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meantime.kernel.change import ending
from meantime.kernel.lifecycle import Status, after
from meantime.kernel.model import Cancelled, CancelRequest, Completed, Failed, Lost, Run, TimedOut
from meantime.kernel.outcomes import TIMEOUT, Report, abandon, is_unheard, judge, sound
from meantime.kernel.payloads import Jsonable
from outcomes import completed, unfinished

from .make import OUTCOMES, make_task

DONE = Report(result=Jsonable("done", True))
STOPPED = Report(stopped=True, partial="half")


def running():
    return make_task(run=Run(timeout=60.0))


def cancelled(by: str = "user"):
    run = Run(timeout=60.0, cancel=CancelRequest(by, 150.0, "enough"))
    return make_task(Status.CANCELLING, run=run)


# Nobody asked it to stop


@pytest.mark.behaviour("L2")
def test_a_result_completes():
    assert judge(running(), DONE, {}) == (Completed("done"), None)


@pytest.mark.behaviour("L2")
def test_a_result_of_none_completes_too():
    assert judge(running(), Report(result=Jsonable(None, True)), {}).outcome == Completed(None)


@pytest.mark.behaviour("L2")
def test_a_result_that_was_not_json_is_marked():
    assert completed(judge(running(), Report(result=Jsonable("{1}", False)), {})).lossy


@pytest.mark.behaviour("L2")
def test_the_runner_may_say_why_it_stopped():
    report = Report(result=Jsonable("x", True), final_message="Bye.", terminate_reason="MAX_TURNS")
    outcome = completed(judge(running(), report, {}))
    assert (outcome.final_message, outcome.terminate_reason) == ("Bye.", "MAX_TURNS")


@pytest.mark.behaviour("L2")
def test_the_goal_was_reached_where_the_runner_says_nothing():
    assert completed(judge(running(), DONE, {})).terminate_reason == "GOAL"


@pytest.mark.behaviour("L3")
def test_an_error_fails_with_all_its_detail():
    error = Failed("no", "exit", "traceback", 2, "half", {}, "Sorry.", "ERROR")
    assert judge(running(), Report(error=error), {}).outcome == error
    assert judge(running(), Report(error=error), {"n": 1}).outcome == Failed(
        "no", "exit", "traceback", 2, "half", {"n": 1}, "Sorry.", "ERROR"
    )


@pytest.mark.behaviour("L27")
def test_what_nobody_can_know_is_lost():
    report = Report(lost="the process is gone", partial="half")
    assert judge(running(), report, {}).outcome == Lost("the process is gone", "half")


@pytest.mark.behaviour("L3")
def test_work_that_cancels_itself_has_failed():
    outcome = judge(running(), Report(stopped=True), {}).outcome
    assert isinstance(outcome, Failed)
    assert outcome.code == "cancelled_itself"


@pytest.mark.behaviour("I7")
@pytest.mark.parametrize(
    "report", [STOPPED, Report(error=Failed("no"), partial="half")], ids=["itself", "error"]
)
def test_a_failure_keeps_the_partial_output(report):
    assert unfinished(judge(running(), report, {})).partial == "half"


# Somebody asked


@pytest.mark.behaviour("L5")
def test_what_stopped_when_asked_was_cancelled():
    assert judge(cancelled(), STOPPED, {}).outcome == Cancelled("user", "enough", "half")


@pytest.mark.behaviour("L7")
def test_finished_first_wins_over_a_cancel():
    assert judge(cancelled(), DONE, {}).outcome == Completed("done")


@pytest.mark.behaviour("L7")
def test_a_work_that_fails_while_it_is_cancelled_is_cancelled_and_keeps_its_error():
    found = judge(cancelled(), Report(error=Failed("no", partial="half")), {"n": 1}).outcome
    assert found == Cancelled("user", "enough", "half", emitted_vars={"n": 1}, error="no")


@pytest.mark.behaviour("L7")
def test_an_error_of_a_cancelled_work_is_kept_by_its_two_ends():
    found = judge(cancelled(), Report(error=Failed("a" * 5_000 + "z")), {}).outcome
    assert isinstance(found, Cancelled)
    assert len(found.error) < 2_100
    assert (found.error[0], found.error[-1]) == ("a", "z")


# The clock asked


@pytest.mark.behaviour("L13")
def test_a_run_that_the_clock_stopped_timed_out_with_its_partial_output():
    assert judge(cancelled(TIMEOUT), STOPPED, {}) == (TimedOut(60.0, "half"), None)


@pytest.mark.behaviour("N22")
def test_a_result_after_the_deadline_is_late_and_no_success():
    assert judge(cancelled(TIMEOUT), DONE, {}) == (TimedOut(60.0), "done")


@pytest.mark.behaviour("L13")
def test_an_error_after_the_deadline_is_still_a_timeout():
    assert isinstance(judge(cancelled(TIMEOUT), Report(error=Failed("no")), {}).outcome, TimedOut)


# It would not stop


@pytest.mark.behaviour("L6")
def test_what_did_not_stop_in_its_grace_is_abandoned():
    assert abandon(cancelled(), {"n": 1}) == Cancelled("user", "enough", None, True, {"n": 1})


@pytest.mark.behaviour("L6")
def test_a_run_that_does_not_stop_after_its_timeout_is_an_abandoned_timeout():
    assert abandon(cancelled(TIMEOUT), {}) == TimedOut(60.0, abandoned=True)


@pytest.mark.behaviour("L6")
def test_without_a_request_on_record_it_is_a_cancel_by_nobody():
    assert abandon(running(), {}) == Cancelled(abandoned=True)


# Whatever it reports

reports = st.builds(
    Report,
    result=st.none() | st.builds(Jsonable, st.text(max_size=3), st.booleans()),
    error=st.none() | st.just(Failed("no")),
    stopped=st.booleans(),
    lost=st.sampled_from(["", "gone"]),
    partial=st.none() | st.text(max_size=3),
)
asked = st.sampled_from([running(), cancelled(), cancelled(TIMEOUT)])


@pytest.mark.behaviour("L1")
@given(asked, reports)
def test_every_report_is_an_ending_the_table_allows(task, report):
    assert after(task.status, ending(judge(task, report, {}).outcome)) is not None


@pytest.mark.behaviour("R19")
@given(asked, reports)
def test_emitted_values_stay_with_every_outcome(task, report):
    assert judge(task, report, {"n": 1}).outcome.emitted_vars == {"n": 1}
    assert abandon(task, {"n": 1}).emitted_vars == {"n": 1}


@pytest.mark.behaviour("N22")
@given(reports)
def test_against_the_clock_nothing_is_a_success(report):
    verdict = judge(cancelled(TIMEOUT), report, {})
    assert isinstance(verdict.outcome, TimedOut)
    assert verdict.late == (report.result.value if report.result else None)


def test_a_runner_that_gives_no_report_has_failed():
    report = sound({"result": 1})
    assert report.error == Failed("The runner gave no report but dict.", "no_report")


def test_an_ending_is_unheard_if_the_run_itself_may_still_say_how_it_ended():
    assert [is_unheard(OUTCOMES[status]) for status in (Status.COMPLETED, Status.LOST)] == [False, True]
    assert not is_unheard(TimedOut(60.0))
    assert is_unheard(TimedOut(60.0, abandoned=True))
    assert is_unheard(Cancelled("user", "", abandoned=True))
