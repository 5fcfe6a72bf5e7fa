"""The code of the guides to frameworks, each block with what it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

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
