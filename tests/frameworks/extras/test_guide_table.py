"""Every row of the guide's table is one that checks have read."""

from __future__ import annotations

import re
from pathlib import Path

import say_table
from guide_table import rows

TESTS = Path(__file__).parents[2]
PYDANTIC_AI = TESTS / "integrations" / "pydantic_ai" / "test_guide_row.py"
SUITES = (*TESTS.glob("frameworks/*/test_turns.py"), PYDANTIC_AI)
ITS_ROW = re.compile(r'framework = "(.+)"$', re.MULTILINE)


PLAYED = re.compile(r'check_row\("(.+)", ')
TALKS = (*TESTS.glob("frameworks/*/test_talk.py"), TESTS / "conformance" / "test_talks.py")


def test_each_row_of_errors_is_played_once():
    played = [row for path in TALKS for row in PLAYED.findall(path.read_text())]
    assert sorted(played) == sorted(say_table.rows()) == sorted(rows())


def test_each_row_is_checked_by_one_suite():
    checked = [row for path in SUITES for row in ITS_ROW.findall(path.read_text())]
    assert sorted(checked) == sorted(rows())
