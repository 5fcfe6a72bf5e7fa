"""Seed 001's progress lines and hints over random sequences of both seeds; planted mistakes are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from task_progress import play_all

from meantime.kernel.change import Change
from meantime.kernel.notices import Notice
from meantime.ports.store import Committed
from meantime.runtime.batches import Batches
from meantime.stores.sqlite import counters

pytestmark = pytest.mark.anyio
FEW = pytest.param(range(10), marks=pytest.mark.core("the one model of batches and resumes"))
MANY = [pytest.param(range(at, at + 100), marks=pytest.mark.breadth) for at in range(0, 1_000, 100)]
PLANTED = 40  # sequences, of which one at least must find a mistake


@pytest.mark.behaviour("N13", "N14", "R17")
@pytest.mark.parametrize("seeds", [FEW, *MANY], ids=str)
async def test_progress_status_and_session_are_what_the_journal_says(tmp_path: Path, seeds: range) -> None:
    await play_all(seeds, tmp_path)


def keeps_its_old_batch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Batches, "of_resumed", lambda self, task: task.batch)


def forgets_the_open_batch_with_a_newer_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Batches, "_leave", lambda self, thread, batch: self._open.pop(thread, None))


def does_not_open_a_forgotten_batch_again(patch: pytest.MonkeyPatch) -> None:
    heard = Batches.on_commit

    def on_commit(self: Any, change: Change, committed: Committed) -> None:
        if (change.task.thread, change.task.batch) in self._counts:
            heard(self, change, committed)

    patch.setattr(Batches, "on_commit", on_commit)


def looks_at_its_own_batch_alone(patch: pytest.MonkeyPatch) -> None:
    whole = counters.with_standing

    def with_standing(notice: Notice, stood: str) -> Notice:
        return replace(whole(notice, stood), running=0)

    patch.setattr(counters, "with_standing", with_standing)


def counts_a_deleted_batch_from_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(counters, "batch_count", lambda batch, rows: None)


@pytest.mark.behaviour("N13", "N14", "R17")
@pytest.mark.breadth
@pytest.mark.parametrize(
    "plant",
    [
        keeps_its_old_batch,
        forgets_the_open_batch_with_a_newer_one,
        does_not_open_a_forgotten_batch_again,
        looks_at_its_own_batch_alone,
        counts_a_deleted_batch_from_nothing,
    ],
)
async def test_a_planted_mistake_is_found(
    plant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=r"^seed [0-9]"):
        await play_all(range(PLANTED), tmp_path)
