"""`make bench CHECK=1` names what became worse than in the recorded run, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.measure import Ratio
from benchmarks.recorded_run import ROOT, SLACK, compare, load, ratios_of, recorded_names

pytestmark = pytest.mark.docs

BENCHMARKS = ROOT / "benchmarks"
COST = "latency/durable submit, of a bare commit"
SPEED = "peers/huey, CPU in tasks of ours"
RECORDED = {COST: Ratio(2.0, "less"), SPEED: Ratio(5.0, "more")}


@pytest.mark.parametrize(
    ("name", "now"), [(COST, 2.0 * (1 + SLACK) + 0.01), (SPEED, 5.0 / (1 + SLACK) - 0.01)]
)
def test_a_ratio_that_is_worse_by_more_than_the_slack_is_named(name: str, now: float) -> None:
    (line,) = compare(RECORDED, {**RECORDED, name: RECORDED[name]._replace(value=now)})
    assert line.startswith(f"{name}: {now:.2f}, and it was {RECORDED[name].value:.2f}")


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("part", [1 - SLACK + 0.02, 1.0, 1 + SLACK - 0.02])
def test_noise_within_the_slack_is_not_named(name: str, part: float) -> None:
    now = RECORDED[name]._replace(value=RECORDED[name].value * part)
    assert compare(RECORDED, {**RECORDED, name: now}) == []


def test_a_ratio_that_became_much_better_is_not_named() -> None:
    assert compare(RECORDED, {COST: Ratio(0.5), SPEED: Ratio(50.0, "more")}) == []


def test_a_recorded_ratio_that_was_not_measured_is_named() -> None:
    assert compare(RECORDED, {COST: Ratio(2.0)}) == [f"{SPEED}: not measured; it was 5.00."]


def test_a_new_ratio_has_nothing_to_be_compared_with() -> None:
    assert compare({}, RECORDED) == []


def test_only_the_benchmarks_that_ran_are_compared() -> None:
    run = {
        "latency": {"ratios": {COST: RECORDED[COST]._asdict()}},
        "peers": {"ratios": {SPEED: RECORDED[SPEED]._asdict()}},
    }
    assert ratios_of(run, ["latency"]) == {COST: RECORDED[COST]}


def test_the_recorded_run_has_ratios_of_benchmarks_that_exist() -> None:
    from benchmarks.__main__ import NAMES

    recorded = ratios_of(load(), list(load()))
    assert set(load()) <= set(NAMES)
    assert {name.split("/")[0] for name in recorded} == set(recorded_names(watched=True))
    assert {"latency", "end_to_end", "peers"} <= set(recorded_names(watched=True))
    assert set(recorded_names(watched=False)) == set(load())
    assert all(one.value > 0 for one in recorded.values())


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.stem)
def test_ratios_have_the_name_of_their_benchmark(path: Path) -> None:
    """Those of another name would neither be recorded nor watched."""
    assert set(_watched_in(path)) <= {path.stem}


def test_every_limit_of_what_work_costs_is_watched() -> None:
    assert all(_watched_in(BENCHMARKS / f"{name}.py") for name in ("commands", "output", "memory", "disk"))


def _watched_in(path: Path) -> list[str]:
    return re.findall(r'RATIOS\[f?"([a-z_]+)/', path.read_text("utf-8"))
