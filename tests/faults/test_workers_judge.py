"""The judge of the family of workers: which losses it takes for explained."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from meantime import Status, Task

from .judge import Fact
from .workers.jobs import Job
from .workers.verdict import Done, Outage, Ran, _may_be_lost, _wrong, runs_of

pytestmark = pytest.mark.faults

PATIENCE = 20.0
DONE = Done(killed={"w1 2"}, outages=[Outage("w2", 100.0, 129.0)], patience=PATIENCE, full=set())
COMMAND, PLAIN = Job("a-1", "a", "command", 1.0, False), Job("a-1", "a", "plain", 1.0, False)


def _ran(at: float, *, told_before: bool, worker: str = "w2") -> list[Ran]:
    facts = [Fact("acked", "a", "a-1.1", ""), Fact("ran", "a", "a-1.1", f"1 {worker} 5 {at}")]
    return runs_of(facts if told_before else facts[::-1])["a-1.1"]


@pytest.mark.parametrize(
    ("at", "told_before", "explained"),
    [
        (99.0, False, True),  # it ran while its worker froze
        (130.0, False, False),  # it began when its worker was back, and was lost later
        (130.0, True, True),  # it was given up while its grant waited at the frozen worker
        (170.0, True, False),  # that was long before
    ],
)
def test_a_command_is_lost_with_a_worker_that_was_frozen_for_too_long(
    at: float, told_before: bool, explained: bool
):
    assert _may_be_lost(COMMAND, "w2", _ran(at, told_before=told_before), DONE) is explained


def test_a_command_survives_the_kill_of_its_worker():
    assert not _may_be_lost(COMMAND, "w1", [Ran(1, "w1", "2", 99.0)], DONE)
    assert _may_be_lost(PLAIN, "w1", [Ran(1, "w1", "2", 99.0)], DONE)


def test_nothing_explains_the_loss_of_an_idempotent_function():
    runs = [Ran(attempt, "w1", "2", 90.0 + attempt) for attempt in (1, 2, 3)]
    claim = SimpleNamespace(worker="w1")
    lost = cast(
        "Task",
        SimpleNamespace(status=Status.LOST, run=SimpleNamespace(claim=claim, attempt=3), outcome="lost"),
    )
    assert list(_wrong(PLAIN, lost, runs, None, DONE)) == []
    assert len(list(_wrong(Job("a-1", "a", "idempotent", 1.0, False), lost, runs, None, DONE))) == 1
