"""The table of docs/guides/wrap.md says what the tests compare."""

from __future__ import annotations

import pytest
import write_wrap_table as tool

pytestmark = pytest.mark.docs


def test_the_table_is_fresh():
    page = tool.PAGE.read_text("utf-8")
    assert tool.written(page) == page, "stale: run `python tools/write_wrap_table.py`"


def test_a_stale_table_is_noticed():
    page = tool.PAGE.read_text("utf-8").replace(f"{tool.BEGIN}\n", f"{tool.BEGIN}\n| tea | ✓ | ✓ |\n")
    assert tool.written(page) != page
