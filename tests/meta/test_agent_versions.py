"""docs/guides/coding-agents.md names the versions that CI tests with, and the newest that were driven."""

from __future__ import annotations

import json

import pytest
import write_agent_versions as tool

pytestmark = pytest.mark.docs


def test_the_page_has_the_pinned_versions():
    page = tool.PAGE.read_text("utf-8")
    assert page == tool.write(), "stale: run `python tools/write_agent_versions.py`"
    pinned = json.loads(tool.PINNED.read_text("utf-8"))
    for version in pinned["dependencies"].values():
        assert f"| {version} |" in page
