"""Every link between our pages leads to a page, and to a heading of it; the index names every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / ".github").rglob("*.md")), *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([^"]+)">')


def links(text: str) -> list[str]:
    """The links to places of ours: no addresses, and nothing of a block of code."""
    prose = CODE.sub("", FENCE.sub("", text))
    return [link for link in LINK.findall(prose) if not re.match(r"[a-z]+:", link)]


def anchors(text: str) -> set[str]:
    """As GitHub makes them of headings: lower case, no punctuation, a hyphen for every space."""
    prose = FENCE.sub("", text)
    words = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", one).strip().lower() for one in HEADING.findall(prose))
    return {re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in words} | set(ANCHOR.findall(prose))


def broken(page: Path, text: str) -> Iterator[str]:
    for link in links(text):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and anchor not in anchors(text if target == page else target.read_text("utf-8")):
            yield f"{link}: {target.name} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path):
    assert list(broken(page, page.read_text("utf-8"))) == []


def test_a_link_that_leads_nowhere_is_noticed():
    text = (
        "# A b, c\n[x](gone.md) [y](#gone) [z](#a-b-c) [w](README.md#gone) `[v](gone.md)` [u](https://u.x)\n"
    )
    found = [problem.partition(":")[0] for problem in broken(ROOT / "SECURITY.md", text)]
    assert found == ["gone.md", "#gone", "README.md#gone"]


def test_the_index_names_every_page_once():
    """Decisions have an index of their own."""
    index = DOCS / "README.md"
    named = [(DOCS / link).resolve() for link in links(index.read_text("utf-8"))]
    decisions = DOCS / "internals" / "decisions"
    pages = [page for page in DOCS.rglob("*.md") if page != index and page.parent != decisions]
    assert sorted(named) == sorted([*pages, decisions / "README.md"])
