"""Where a task stands, and the one table of what can happen to it."""

from __future__ import annotations

import pytest

from meantime.kernel.lifecycle import ACTIVE, ENDED, TABLE, Move, Status, after, diagram

ENDINGS = (Move.COMPLETE, Move.FAIL, Move.STOP, Move.TIME_OUT, Move.LOSE)


def reachable(start: Status) -> set[Status]:
    seen: set[Status] = set()
    todo = [start]
    while todo:
        status = todo.pop()
        if status not in seen:
            seen.add(status)
            todo += TABLE[status].values()
    return seen


@pytest.mark.behaviour("L1")
def test_the_table_knows_every_status():
    assert set(TABLE) == set(Status)


@pytest.mark.behaviour("L1")
def test_every_move_is_legal_somewhere():
    assert {move for moves in TABLE.values() for move in moves} == set(Move)


@pytest.mark.behaviour("L1")
def test_a_status_is_either_active_or_ended():
    assert set(Status) == ACTIVE | ENDED
    assert not ACTIVE & ENDED


@pytest.mark.behaviour("L1")
def test_every_status_can_be_reached():
    assert reachable(Status.QUEUED) == set(Status)


@pytest.mark.behaviour("L1")
@pytest.mark.parametrize("status", sorted(ACTIVE))
def test_no_active_status_is_a_dead_end(status):
    assert reachable(status) & ENDED


@pytest.mark.behaviour("L1")
@pytest.mark.parametrize("status", sorted(ENDED))
def test_an_ended_status_is_final(status):
    """Only a resume leads out, and it opens a new run."""
    assert dict(TABLE[status]) == {Move.RESUME: Status.QUEUED}


@pytest.mark.behaviour("L16")
@pytest.mark.parametrize("status", sorted(ACTIVE))
def test_only_what_ended_can_be_resumed(status):
    assert after(status, Move.RESUME) is None


@pytest.mark.behaviour("L4")
def test_a_queued_task_starts_when_a_slot_is_free():
    assert after(Status.QUEUED, Move.START) is Status.RUNNING


@pytest.mark.behaviour("L5")
def test_cancel_of_running_work_is_a_request():
    assert after(Status.RUNNING, Move.CANCEL) is Status.CANCELLING
    assert after(Status.WAITING, Move.CANCEL) is Status.CANCELLING


@pytest.mark.behaviour("L5")
def test_cancel_of_what_never_started_ends_it_at_once():
    assert after(Status.QUEUED, Move.CANCEL) is Status.CANCELLED


@pytest.mark.behaviour("L7")
@pytest.mark.parametrize("move", ENDINGS)
def test_a_cancelling_task_may_still_end_in_any_way(move):
    assert after(Status.CANCELLING, move) in ENDED


@pytest.mark.behaviour("L8")
def test_a_second_cancel_is_no_move():
    assert after(Status.CANCELLING, Move.CANCEL) is None


@pytest.mark.behaviour("L5")
@pytest.mark.parametrize("move", [Move.START, Move.ASK, Move.ANSWER, Move.RETRY])
def test_what_is_being_cancelled_does_not_go_on(move):
    assert after(Status.CANCELLING, move) is None


@pytest.mark.behaviour("L28")
def test_a_question_makes_it_wait_and_the_answer_lets_it_run():
    assert after(Status.RUNNING, Move.ASK) is Status.WAITING
    assert after(Status.WAITING, Move.ANSWER) is Status.RUNNING


@pytest.mark.behaviour("L2")
def test_what_never_started_cannot_complete():
    assert after(Status.QUEUED, Move.COMPLETE) is None
    assert after(Status.QUEUED, Move.TIME_OUT) is None


@pytest.mark.behaviour("L27")
@pytest.mark.parametrize("status", [Status.RUNNING, Status.WAITING])
def test_a_retry_queues_again_what_a_crash_cut_off(status):
    assert after(status, Move.RETRY) is Status.QUEUED


def test_the_diagram_has_one_line_per_legal_move():
    lines = {line.strip() for line in diagram().splitlines()}
    legal = {f"{status} --> {to}: {move}" for status, moves in TABLE.items() for move, to in moves.items()}
    assert legal <= lines
    assert len(lines) == len(legal) + 3  # the heading, and the two ways in


def test_the_diagram_is_mermaid():
    assert diagram().splitlines()[0] == "stateDiagram-v2"
