"""The diagram in docs/internals/life-of-a-task.md is the table of moves, and not what it was last month."""

from __future__ import annotations

from pathlib import Path

import draw_lifecycle as tool
import pytest

from meantime.kernel.lifecycle import Status

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def page() -> str:
    return tool.PAGE.read_text("utf-8")


def test_the_diagram_is_fresh(page):
    assert page == tool.redraw(page), "stale: run `python tools/draw_lifecycle.py`"


def test_a_stale_diagram_is_noticed(page):
    stale = page.replace("queued --> running: start", "queued --> completed: start")
    assert stale != page
    assert tool.redraw(stale) == page


def test_only_the_diagram_is_redrawn():
    page = f"above\n{tool.BEGIN}\nold\n{tool.END}\nbelow\n"
    fresh = tool.redraw(page)
    assert fresh.startswith("above\n")
    assert fresh.endswith("\nbelow\n")
    assert "old" not in fresh


def test_a_page_without_its_markers_is_refused():
    with pytest.raises(SystemExit, match="exactly once"):
        tool.redraw("no markers here")


@pytest.mark.parametrize("status", Status)
def test_every_status_is_explained(page, status):
    assert f"| `{status}` |" in page
