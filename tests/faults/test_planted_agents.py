"""The family of agents can fail: each planted bug is reported by its judge, and without it nothing is."""

from __future__ import annotations

import shutil

import pytest

from . import strace
from .agent_plants import LAST, PLANT
from .agentruns import PROGRAM, recover
from .judge import Verdict
from .kills import new_folder

pytestmark = pytest.mark.faults


def killed_after(fact: str, plant: str, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """The family's story, killed when this was said; the next owner has the same bug."""
    monkeypatch.setenv(PLANT, plant)
    folder = new_folder()
    try:
        with monkeypatch.context() as dying:
            dying.setenv(LAST, fact)
            ended = strace.run("story", folder, program=PROGRAM)
        assert ended.killed, ended
        return recover(folder)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("fact", ["accepted waits.2", "ran asks.1", "answered asks.1.answer"])
def test_without_a_plant_nothing_is_reported(fact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = killed_after(fact, "", monkeypatch)
    assert verdict.clean, str(verdict)


def test_a_follow_up_that_is_kept_in_memory_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = killed_after("accepted waits.2", "follow_up_in_memory", monkeypatch)
    assert any("waits.2 was accepted" in problem for problem in verdict.lost), str(verdict)


@pytest.mark.parametrize("plant", ["prompt_before_mark", "mark_is_not_read"])
def test_a_prompt_that_nobody_remembers_is_given_twice(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = killed_after("ran asks.1", plant, monkeypatch)
    assert any("asks.1 ran 2 times" in problem for problem in verdict.doubled), str(verdict)
