"""Every Python block in our pages runs, and prints what the page says it prints."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: Path
    line: int
    code: str
    prints: str | None  # of the `text` block that follows; None where there is none

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> list[Block]:
    found: list[Block] = []
    for page in PAGES:
        text = page.read_text("utf-8")
        fences = list(FENCE.finditer(text))
        for place, fence in enumerate(fences):
            if fence[1] != "python":
                continue
            after = fences[place + 1] if place + 1 < len(fences) else None
            prints = after[2] if after is not None and after[1] == "text" else None
            found.append(Block(page, text.count("\n", 0, fence.start()) + 2, fence[2], prints))
    return found


def run(block: Block) -> str:
    """Blocks may await at their top level, as in a notebook."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * (block.line - 1) + block.code, str(block.page), "exec", flags)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(code, {"__name__": "__main__"})
        if inspect.iscoroutine(result):
            asyncio.run(result)
    return printed.getvalue()


def test_there_are_blocks():
    assert {block.page.name for block in blocks()} >= {"README.md"}


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_block(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    printed = run(block)
    if block.prints is not None:
        assert printed == block.prints


def test_a_block_that_prints_something_else_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert run(Block(ROOT / "x.md", 1, "import asyncio\nprint(await asyncio.sleep(0, 2))\n", "1\n")) == "2\n"
