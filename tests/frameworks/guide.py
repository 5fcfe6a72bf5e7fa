"""The code of the guides to frameworks, each block with what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
FENCE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    page: Path
    code: str
    prints: str

    def run(self, names: dict[str, Any] | None = None) -> str:
        """Its output; `names` gets its names. It writes its files into the working folder."""
        names = {} if names is None else names
        names["__name__"] = "__main__"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(self.code, str(self.page), "exec", dont_inherit=True), names)
        return printed.getvalue()

    def pasted(self, folder: Path) -> tuple[str, str]:
        """Its output and its errors, as a program of its own in this folder, without a key."""
        program = folder / "example.py"
        program.write_text(self.code, "utf-8")
        env = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        command = [sys.executable, program]
        ran = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=2 * LIMIT, check=False
        )
        return ran.stdout, ran.stderr


def examples(name: str, heading: str | None = None) -> list[Example]:
    """Those of a page, or of one of its chapters."""
    page = GUIDES / name
    text = page.read_text("utf-8")
    if heading is not None:
        chapters = re.split(r"^## ", text, flags=re.MULTILINE)
        (text,) = [chapter for chapter in chapters if chapter.partition("\n")[0] == heading]
    found = [Example(page, *fence.groups()) for fence in FENCE.finditer(text)]
    assert found, "there is no code"
    assert len(found) == text.count("```python"), "each block is followed by what it prints"
    return found
