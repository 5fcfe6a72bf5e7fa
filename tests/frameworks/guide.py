"""The code of the guide to frameworks, by the heading above it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "frameworks.md"
FENCE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    code: str
    prints: str

    def run(self) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(self.code, str(PAGE), "exec", dont_inherit=True), {"__name__": "__main__"})
        return printed.getvalue()


def examples(heading: str) -> list[Example]:
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    (section,) = [text for text in sections if text.partition("\n")[0] == heading]
    found = [Example(*fence.groups()) for fence in FENCE.finditer(section)]
    assert len(found) == section.count("```python"), "each block is followed by what it prints"
    return found
