"""Writes docs/internals/placed-tests.md: the tests that `pytest --place=worker` leaves out, and why.

python tools/write_placed_tests.py
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "internals" / "placed-tests.md"
FOLDERS = ("fundamentals", "runtime")
HEAD = """# Tests with their work at a worker

`pytest --place=worker tests/fundamentals tests/runtime` runs the lessons and the scenarios of the runtime \
with their functions and commands at a worker, over a carrier in memory; with `--carrier=nats` over a NATS \
server. `tests/worker_mode.py` says how. \
The tests below stay with the owner, because they are about its process. `tools/write_placed_tests.py` \
writes this page.

| test | why it stays |
|---|---|
"""


def left_out() -> Iterator[tuple[str, str, str]]:
    """File, test and reason of each."""
    for folder in FOLDERS:
        for path in sorted((ROOT / "tests" / folder).glob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    for reason in map(_reason, node.decorator_list):
                        if reason is not None:
                            yield f"tests/{folder}/{path.name}", node.name, reason


def _reason(mark: ast.expr) -> str | None:
    if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != "pytest.mark.in_process":
        return None
    return ast.literal_eval(mark.args[0])


def page() -> str:
    rows = [f"| `{file}::{test}` | {reason} |" for file, test, reason in left_out()]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
