"""Every path that a page names exists: no docs about files long gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
ROOMS = "src|tests|docs|examples|tools|benchmarks"
ROOTED = re.compile(rf"(?<![\w./-])(?:{ROOMS})/[\w./*-]*[\w/*]")
QUOTED = re.compile(r"`([\w./*-]+(?:/|\.(?:pyi?|md|sql|toml)))`")
METHODS = {"tools/list", "tools/call"}  # of MCP
LINKED = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


def named_in(text: str) -> set[str]:
    return {name for pattern in (ROOTED, QUOTED, LINKED) for name in pattern.findall(text)} - METHODS


def exists(name: str, page: Path) -> bool:
    """From the root, from the page's own folder, or inside the package."""
    homes = (ROOT, page.parent, ROOT / "src" / "meantime")
    return any(any(home.glob(name.rstrip("/"))) if "*" in name else (home / name).exists() for home in homes)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_paths_that_a_page_names_exist(page: Path):
    missing = sorted(name for name in named_in(page.read_text("utf-8")) if not exists(name, page))
    assert missing == []


def test_a_missing_path_is_noticed():
    text = "`runtime/gone.py`, [this](docs/gone.md), src/meantime/gone, `docs/*.gone`; not `a/b` or `3.5`."
    names = named_in(text)
    assert names == {"runtime/gone.py", "docs/gone.md", "src/meantime/gone", "docs/*.gone"}
    assert not any(exists(name, ROOT / "README.md") for name in names)
