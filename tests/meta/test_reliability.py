"""docs/internals/reliability.md shows the results of reliability.json, whichever families it has."""

from __future__ import annotations

import json

import pytest
import write_reliability as tool
from tests.faults.about import ABOUT
from tests.faults.families import FAMILIES

pytestmark = pytest.mark.docs


def test_the_page_is_fresh():
    assert tool.PAGE.read_text("utf-8") == tool.write(), "stale: run `python tools/write_reliability.py`"


def test_the_report_is_of_families_that_there_are():
    report = json.loads(tool.REPORT.read_text("utf-8"))
    assert report["families"].keys() <= {family.name for family in FAMILIES}
    assert ABOUT.keys() <= {family.name for family in FAMILIES}


def test_a_new_family_and_a_bad_result_are_shown():
    family = {"title": "a new one", "about": "It is new.", "faults": 1_200, "lost": 3, "doubled": 0}
    report = {"families": {"new": {**family, "misordered": 0, "seed": 7, "version": "1.0"}}}
    assert "- **new**: It is new.\n" in tool.families(report)
    assert "| new: a new one | 1,200 | 3 | 0 | 0 | 7 | 1.0 |" in tool.results(report)
    assert "| **all** | **1,200** | **3** |" in tool.results(report)


def test_a_bad_result_stays_after_a_clean_one():
    clean = {"title": "t", "faults": 1, "lost": 0, "doubled": 0, "misordered": 0, "seed": 8, "version": "1.0"}
    bad = {**clean, "doubled": 2, "seed": 7}
    assert "not clean" not in tool.results({"families": {"new": clean}})
    text = tool.results(
        {"families": {"new": {**clean, "earlier": [bad, {**bad, "seed": 6, "cause": "Known."}]}}}
    )
    assert "- new, seed 7, version 1.0: 0 lost, 2 doubled, 0 misordered. The cause is not known.\n" in text
    assert "- new, seed 6, version 1.0: 0 lost, 2 doubled, 0 misordered. Known.\n" in text


def test_what_is_not_flat_is_said():
    sizes = {"mean": 80 << 20, "most": 90 << 20, "growth": 9 << 20, "error": 0.0, "allowed": 8 << 20}
    counts = {"lost": 0, "doubled": 0, "misordered": 1, "told": 5, "conversations": 2}
    found = {"played": 600, "maximum": 30, "kills": {"daemon": 2}, "seed": 7, "versions": ["1.0"]}
    text = tool.soak({"soak": {**found, **counts, "flat": {"rss": {**sizes, "flat": False}}}})
    assert "| resident memory | 80.0 MB | 90.0 MB | +9.0 ± 0.0 MB | 8.0 MB | **not flat** |" in text
    assert "2 daemons and 0 clients killed: **0 lost, 0 doubled, 1 misordered**" in text
    assert "10 tasks a second" in text
