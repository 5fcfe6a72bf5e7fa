"""Every scenario of the seeds has a test."""

from __future__ import annotations

import pytest
import write_seeds as tool

pytestmark = pytest.mark.docs


def test_every_scenario_is_proved():
    assert list(tool.problems()) == []


def test_there_are_as_many_as_the_seeds_have():
    counts: dict[str, int] = {}
    for one in tool.scenarios():
        counts[one.seed] = counts.get(one.seed, 0) + 1
    assert counts == {"000": 22, "001": 74, "002": 19, "003": 14, "004": 31}


def test_the_page_is_fresh():
    assert tool.PAGE.read_text("utf-8") == tool.write(), "stale: run `python tools/write_seeds.py`"


def test_a_scenario_without_a_test_is_noticed(monkeypatch: pytest.MonkeyPatch):
    lost = tool.Scenario("000", "A requirement", "Nobody has thought of this")
    every = tool.scenarios()
    monkeypatch.setattr(tool, "scenarios", lambda: [*every, lost])
    assert list(tool.problems()) == ["000 nobody_has_thought_of_this: nothing proves it"]


def test_every_seed_has_its_differences_on_the_page():
    page = tool.PAGE.read_text("utf-8")
    listed = page.partition("## Where we differ on purpose")[2]
    assert {seed for one in tool.differences() for seed in one["seeds"]} == {
        "000",
        "001",
        "002",
        "003",
        "004",
    }
    for one in tool.differences():
        assert one["topic"] in listed
        assert one["why"] in listed


def test_a_difference_without_a_reason_or_with_a_test_that_is_gone_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
):
    strange = {"seeds": ["009"], "topic": "Tea", "seed": "x", "here": "y", "test": "tests/a.py::test_b"}
    monkeypatch.setattr(tool, "differences", lambda: [strange])
    assert list(tool.problems()) == [
        "differences.toml: 'Tea' does not say why",
        "differences.toml: 'Tea': 009 is not a seed",
        "differences.toml: 'Tea': there is no tests/a.py::test_b",
    ]
