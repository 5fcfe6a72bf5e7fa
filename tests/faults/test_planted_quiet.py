"""The family of quiet files can fail: each planted bug is reported by the same judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import quiet, strace

pytestmark = pytest.mark.faults

SEEDS = range(3)


@pytest.mark.parametrize("plant", ["file_stays", "file_unchecked"])
def test_a_planted_bug_is_found(plant: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        folder = tmp_path / str(seed)
        folder.mkdir()
        quiet.story(folder, seed, plant=plant)
        if quiet.recover(folder, plant).lost:
            return
    raise AssertionError(f"{plant} was not found")


@pytest.mark.skipif(bool(strace.missing()), reason="needs strace")
def test_a_file_that_outlives_its_owner_is_found(tmp_path: Path) -> None:
    """Removed after the commit only, and trusted by the next owner: a kill in between costs a notice."""
    for number in range(1, 9):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed = strace.killing(folder / "trace", strace.Point("unlink", number))
        quiet.story(folder, number, *killed, plant="file_trusted")
        if quiet.recover(folder, "file_trusted").lost:
            return
    raise AssertionError("it was not found")
