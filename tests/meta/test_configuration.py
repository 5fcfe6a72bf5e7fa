"""docs/reference/configuration.md names every key that there is, with the default that it has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from meantime.app.config_keys import known

TOOL = Path(__file__).resolve().parents[2] / "tools" / "write_configuration.py"


def test_the_page_is_fresh():
    spec = importlib.util.spec_from_file_location("write_configuration", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text("utf-8")
    assert page == tool.write(), "stale: run `python tools/write_configuration.py`"
    table = page.partition(tool.BEGIN)[2]
    assert all(f"| `{name.rpartition('.')[2]}` |" in table for name in known())
    assert len([line for line in table.splitlines() if line.startswith("| `")]) == len(known())
