"""The families of the link can fail: each planted bug is reported by the same judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from . import links
from .judge import Verdict

pytestmark = pytest.mark.faults
Play: TypeAlias = Callable[[Path, int, str], Verdict]
SEEDS = range(3)  # the first is enough, nearly always
SHORT = 4.0  # seconds: what is lost by a planted bug is never told


def killed_daemon(folder: Path, seed: int, plant: str) -> Verdict:
    with links.scene(folder, seed, plant=plant) as scene:
        scene.patience = SHORT
        links.kill_daemon(scene, 3)  # one of them may meet no ending that is on its way
        return scene.judged()


def killed_executor(folder: Path, seed: int, plant: str) -> Verdict:
    with links.scene(folder, seed, plant=plant) as scene:
        scene.patience = SHORT
        links.kill_executors(scene, 1, stops=False)
        return scene.judged()


def cut(folder: Path, seed: int, plant: str) -> Verdict:
    return links.cut(folder, seed, 15, plant, patience=SHORT)[1]


@pytest.mark.parametrize(
    ("plant", "play", "kind"),
    [
        ("heard_before_recorded", killed_daemon, "lost"),
        ("gone_unnoticed", killed_executor, "lost"),
        ("turns_stranded", cut, "lost"),
        ("run_again", cut, "doubled"),
    ],
)
def test_a_planted_bug_is_found(plant: str, play: Play, kind: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        verdict = play(folder, seed, plant)
        if getattr(verdict, kind):
            return
    raise AssertionError(f"{plant} was not found")
