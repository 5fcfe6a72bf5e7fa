"""The diagram in docs/internals/life-of-a-task.md is the table of moves, and not what it was last month."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from meantime.kernel.lifecycle import Status

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "draw_lifecycle.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("draw_lifecycle", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(tool) -> str:
    return tool.PAGE.read_text("utf-8")


def test_the_diagram_is_fresh(tool, page):
    assert page == tool.redraw(page), "stale: run `python tools/draw_lifecycle.py`"


def test_a_stale_diagram_is_noticed(tool, page):
    stale = page.replace("queued --> running: start", "queued --> completed: start")
    assert stale != page
    assert tool.redraw(stale) == page


def test_only_the_diagram_is_redrawn(tool):
    page = f"above\n{tool.BEGIN}\nold\n{tool.END}\nbelow\n"
    fresh = tool.redraw(page)
    assert fresh.startswith("above\n")
    assert fresh.endswith("\nbelow\n")
    assert "old" not in fresh


def test_a_page_without_its_markers_is_refused(tool):
    with pytest.raises(SystemExit, match="exactly once"):
        tool.redraw("no markers here")


@pytest.mark.parametrize("status", Status)
def test_every_status_is_explained(page, status):
    assert f"| `{status}` |" in page
