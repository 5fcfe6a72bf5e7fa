"""docs/guides/coding-agents.md names the versions that CI tests with, and the newest that were driven."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "write_agent_versions.py"


def test_the_page_has_the_pinned_versions():
    spec = importlib.util.spec_from_file_location("write_agent_versions", TOOL)
    assert spec
    assert spec.loader
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.PAGE.read_text("utf-8")
    assert page == tool.write(), "stale: run `python tools/write_agent_versions.py`"
    pinned = json.loads(tool.PINNED.read_text("utf-8"))
    for version in {**pinned["dependencies"], **pinned["devDependencies"]}.values():
        assert f"| {version} |" in page
