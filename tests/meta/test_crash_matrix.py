"""docs/reference/crash-matrix.md shows the figures of crash-matrix.json, of rows that there are."""

from __future__ import annotations

import json

import pytest
import write_crash_matrix as tool
from benchmarks.crash_matrix.judge import Evidence, judged
from benchmarks.crash_matrix.matrix_rows import NOT_PLAYED, SUBJECTS

pytestmark = pytest.mark.docs

FIGURES = json.loads(tool.FIGURES.read_text("utf-8"))


def test_the_page_is_fresh():
    assert tool.PAGE.read_text("utf-8") == tool.write(), "stale: run `python tools/write_crash_matrix.py`"


def test_each_row_is_in_the_table_or_has_a_reason():
    played = {row["name"] for row in FIGURES["rows"]}
    assert played <= {subject.name for subject in SUBJECTS}
    assert FIGURES["missing"].keys() == ({one.name for one in SUBJECTS} | NOT_PLAYED.keys()) - played


def test_the_counts_are_those_of_the_evidence():
    for row in FIGURES["rows"]:
        assert row["verdict"] == judged([Evidence(**each) for each in row["evidence"]])._asdict(), row["name"]
        assert len(row["evidence"]) + row["not_played"] == row["rounds"], row["name"]


def test_meantime_tells_every_ending_once_and_by_itself():
    ours = [row["verdict"] for row in FIGURES["rows"] if row["name"].startswith("Meantime")]
    assert ours
    for counts in ours:
        assert counts["tasks"] == counts["told"] == counts["woken"] > 0
        assert counts["told_twice"] == counts["for_ever"] == 0
        assert not counts["moved"]


def test_a_subject_that_tells_nobody_has_no_count_of_it():
    counts = dict.fromkeys(tool.COUNTS, 0)
    row = {
        "name": "x", "tells": False, "verdict": counts, "mode": "m", "versions": {"v": "1"}, "said": [],
        "not_played": 1, "rounds": 2, "date": "2026-01-01",
    }  # fmt: skip
    text = tool.page(
        {"rows": [row], "missing": {"y": "why."}, "watch": 30},
        "<!-- matrix:begin -->\n<!-- matrix:end -->",
    )
    assert "| x | 0 | – | – | – | – | 0 | 0 | 0 |" in text
    assert "1 of 2 rounds of **x** could not be played." in text
    assert "Not in the table: **y**: why." in text
