"""Writes the table of docs/guides/wrap.md: what the tests compare with and without a wrap.

python tools/write_wrap_table.py
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "surfaces" / "wrap" / "test_same_answers.py"
PAGE = ROOT / "docs" / "guides" / "wrap.md"
BEGIN, END = "<!-- what passes through: written by tools/write_wrap_table.py -->", "<!-- end -->"


def compared() -> list[str]:
    """The names in ASKED, in their order."""
    for node in ast.parse(TESTS.read_text()).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "ASKED":
            assert isinstance(node.value, ast.Dict)
            return [ast.literal_eval(key) for key in node.value.keys if key is not None]
    raise SystemExit(f"{TESTS} has no ASKED.")


def written(page: str) -> str:
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE} has no markers for the table.")
    rows = "".join(f"| {name} | ✓ | ✓ |\n" for name in compared())
    return f"{head}{BEGIN}\n| | stdio | Streamable HTTP |\n|---|---|---|\n{rows}{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
