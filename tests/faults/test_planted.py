"""The suite can fail: each planted bug is reported by the same judge, and without it nothing is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import plants, schedules
from .judge import Verdict

pytestmark = pytest.mark.faults

SEEDS = range(60)


def found(kind: str, plant: Callable[[schedules.Scenario], None] | None = None) -> list[str]:
    """What the judge says first of this kind over a stretch of schedules."""
    for seed in SEEDS:
        problems = [one for one in getattr(schedules.play(seed, plant), kind) if not one.startswith("hang")]
        if problems:
            return problems
    return []


def joined(deliver: Any) -> Verdict:
    verdicts = list(plants.delivered_with_cuts(deliver))
    return Verdict(*(sum(kind, ()) for kind in zip(*verdicts, strict=True)))


def test_without_a_plant_the_judge_is_silent() -> None:
    for seed in SEEDS:
        verdict = schedules.play(seed)
        assert verdict.clean, f"seed {seed}: {verdict}"
    assert joined(plants.in_one_transaction).clean, str(joined(plants.in_one_transaction))


def test_told_before_sending_loses() -> None:
    assert joined(plants.told_before_sending).lost


def test_sent_before_marked_doubles() -> None:
    assert joined(plants.sent_before_marked).doubled


def test_ack_on_leaving_the_block_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    plants.ack_on_leaving(monkeypatch)
    assert found("lost")


def test_a_persons_read_that_settles_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    plants.a_persons_read_settles(monkeypatch)
    assert found("lost")


def test_edge_only_wake_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    plants.edge_only_wake(monkeypatch)
    assert found("lost")


def test_clock_order_misorders() -> None:
    assert found("misordered", plants.clock_order)


def test_retention_that_evicts_the_untold_loses() -> None:
    assert found("lost", plants.retention_evicts_the_untold)


def test_no_compare_and_swap_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    plants.no_compare_and_swap(monkeypatch)
    assert found("doubled")
