"""Every Python block in our pages is a whole program: a reader can paste it into a file and run it.

It prints what the page says it prints, and passes pyright.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "a2a.md",
    "agent-protocol.md",
    "frameworks.md",
    "google-adk.md",
    "langchain.md",
}  # run where their frameworks are, by tests/frameworks
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in ELSEWHERE),
]
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
    code = compile("\n" * (block.line - 1) + block.code, str(block.page), "exec", dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {"__name__": "__main__"})
    return printed.getvalue()


def complaints(found: list[Block], folder: Path) -> list[str]:
    """Of pyright, as an editor has it by default; each with its place in the page."""
    blocks = {f"block_{number}.py": block for number, block in enumerate(found)}
    for name, block in blocks.items():
        (folder / name).write_text(block.code, "utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "standard"}))
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", folder],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    said = json.loads(checked.stdout)
    assert said["summary"]["filesAnalyzed"] == len(blocks)
    return [
        f"{block.page.name}:{block.line + one['range']['start']['line']}: {one['message']}"
        for one in said["generalDiagnostics"]
        if (block := blocks[Path(one["file"]).name])
    ]


def test_there_are_blocks():
    assert {block.page.name for block in blocks()} >= {"README.md"}


@pytest.mark.parametrize("page", sorted({block.page for block in blocks()}), ids=lambda page: page.name)
def test_the_code_of_a_page_runs_and_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In one folder and in their order, as somebody runs them who reads the page."""
    monkeypatch.chdir(tmp_path)
    for block in blocks():
        if block.page == page:
            printed = run(block)
            assert block.prints in (None, printed), f"{block} printed {printed!r}"


def test_pyright_has_no_complaints(tmp_path: Path):
    assert complaints(blocks(), tmp_path) == []


def test_a_complaint_of_pyright_is_noticed(tmp_path: Path):
    (said,) = complaints([Block(ROOT / "x.md", 7, "import asyncio\n\nasyncio.gone()\n", None)], tmp_path)
    assert said.startswith('x.md:9: "gone" is not a known attribute')


def test_the_recorded_steps_of_a_page_are_not_taken_again_by_a_second_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """`print` is in the tool: the page says that its card is not charged again."""
    monkeypatch.chdir(tmp_path)
    (block,) = [block for block in blocks() if "durable_run(" in block.code]
    assert block.page.name == "agents-in-python.md"
    charged, rest = run(block).split("\n", 1)
    assert charged == "The card is charged."
    assert run(block) == rest


def test_a_block_that_prints_something_else_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert run(Block(ROOT / "x.md", 1, "print(2)\n", "1\n")) == "2\n"


def test_a_block_that_awaits_outside_of_a_function_is_noticed():
    with pytest.raises(SyntaxError):
        run(Block(ROOT / "x.md", 1, "import asyncio\n\nawait asyncio.sleep(0)\n", None))
