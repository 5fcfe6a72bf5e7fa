"""docs/reference/configuration.md names every key that there is, with the default that it has."""

from __future__ import annotations

import pytest
import write_configuration as tool

from meantime.app.config_keys import known

pytestmark = pytest.mark.docs


def test_the_page_is_fresh():
    page = tool.PAGE.read_text("utf-8")
    assert page == tool.write(), "stale: run `python tools/write_configuration.py`"
    table = page.partition(tool.BEGIN)[2]
    assert all(f"| `{name.rpartition('.')[2]}` |" in table for name in known())
    assert len([line for line in table.splitlines() if line.startswith("| `")]) == len(known())
