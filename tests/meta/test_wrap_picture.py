"""The picture of the wrap is drawn from a real run, and the guide shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
import record_wrap as tool

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]

STALE = "stale: run `python tools/record_wrap.py`"


def test_the_picture_is_what_its_tool_draws_from_what_was_measured():
    drawn = tool.PICTURE.read_text("utf-8")
    facts = tool.facts_of(drawn)
    assert drawn == tool.draw(facts), STALE
    assert facts.handed_off < facts.gave_up < tool.WORK < facts.told
    assert facts.looks, "the agent worked meanwhile"


def test_the_guide_shows_the_picture():
    assert "../pictures/wrap.svg" in (ROOT / "docs/guides/wrap.md").read_text("utf-8")
