"""The index of decisions names every page by its title, and no number is skipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "internals" / "decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))


def test_the_index_has_every_page_with_its_title():
    titles = [page.read_text("utf-8").splitlines()[0].removeprefix("# ") for page in PAGES]
    named = re.findall(r"(?m)^(\d+)\. \[(.*)\]\((\S+)\)$", (FOLDER / "README.md").read_text("utf-8"))
    assert [(f"{number}. {title}", file) for number, title, file in named] == [
        (title, page.name) for title, page in zip(titles, PAGES, strict=True)
    ]


def test_no_number_is_skipped_or_used_twice():
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))
