"""Writes docs/internals/posix-tests.md: the tests that `pytest --platform=posix` skips, and why.

python tools/write_posix_tests.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "internals" / "posix-tests.md"
MARK = "pytest.mark.linux_only"
HEAD = """# Tests that need Linux

`pytest --platform=posix tests/shell` runs tests with the POSIX path, on a Linux without what only Linux \
has. `tests/posix_mode` says how; `make posix` runs the tests of commands, runtime, daemon, command line and \
agents. \
The tests below need what POSIX lacks, and are skipped. `tools/write_posix_tests.py` writes this page.

| test | what it needs |
|---|---|
"""


def left_out() -> Iterator[tuple[str, str, str]]:
    """File, test and reason of each; `*` for a whole file, and the name of a mark that some cases have."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        if MARK not in text:
            continue
        file = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from (
                    (file, node.name, reason) for reason in map(_reason, node.decorator_list) if reason
                )
            elif isinstance(node, ast.Assign):
                name = ast.unparse(node.targets[0])
                which = "*" if name == "pytestmark" else f"cases with {name}"
                yield from ((file, which, reason) for reason in map(_reason, ast.walk(node.value)) if reason)


def _reason(mark: ast.AST) -> str:
    if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != MARK:
        return ""
    return str(ast.literal_eval(mark.args[0]))


def page() -> str:
    rows = [f"| `{file}::{test}` | {reason} |" for file, test, reason in left_out()]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
