"""The family of agents can fail: each planted bug is reported by its judge, and without it nothing is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from . import strace
from .agent_plants import PLANT
from .agentruns import PROGRAM, recover
from .judge import Verdict
from .kills import new_folder

pytestmark = pytest.mark.skipif(bool(strace.missing()) and not strace.is_ci(), reason=strace.missing())
COMMIT = "fdatasync"  # what the ledger promises lies between two of these


def killed_at_each_commit() -> Iterator[Verdict]:
    """The story is killed at one commit after the other, from its end."""
    folder = new_folder()
    try:
        every = strace.points("story", folder, ("write", COMMIT), program=PROGRAM)
    finally:
        shutil.rmtree(folder)
    found = [point for point in every if point.syscall == COMMIT]
    assert len(found) > 5, found
    for point in reversed(found):
        yield _killed(point)


def reported(kind: str) -> tuple[str, ...]:
    """What the judge says first of this kind."""
    return next((found for verdict in killed_at_each_commit() if (found := getattr(verdict, kind))), ())


def _killed(point: strace.Point) -> Verdict:
    folder = new_folder()
    try:
        strace.kill_at(point, "story", folder, program=PROGRAM)
        return recover(folder)
    finally:
        shutil.rmtree(folder)


def test_a_follow_up_that_is_kept_in_memory_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLANT, "follow_up_in_memory")
    assert any("waits.2 was accepted" in problem for problem in reported("lost"))


@pytest.mark.parametrize("plant", ["prompt_before_mark", "mark_is_not_read"])
def test_a_prompt_that_nobody_remembers_is_given_twice(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLANT, plant)
    assert any("ran 2 times" in problem for problem in reported("doubled"))


def test_without_a_plant_nothing_is_reported() -> None:
    verdicts = list(killed_at_each_commit())
    assert all(verdict.clean for verdict in verdicts), [str(one) for one in verdicts if not one.clean]
