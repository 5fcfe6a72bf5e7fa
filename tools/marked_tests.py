"""The tests of the suite with their markers, read from the source: nothing is imported and nothing runs.

A marker is above the test function itself, with literal texts. One that stands elsewhere (on a class, in
`pytestmark`, in `pytest.param`) would be overlooked here: `misplaced` finds those.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("behaviour", "scenario")


class Mark(NamedTuple):
    kind: str  # behaviour or scenario
    texts: tuple[str, ...]


class MarkedTest(NamedTuple):
    path: str  # relative to the repository
    name: str
    marks: tuple[Mark, ...] = ()

    @property
    def sentence(self) -> str:
        """`test_a_task_is_cancelled` as people read it."""
        return self.name.removeprefix("test_").replace("__", ", ").replace("_", " ")

    def texts(self, kind: str) -> list[tuple[str, ...]]:
        return [mark.texts for mark in self.marks if mark.kind == kind]


def tests() -> tuple[MarkedTest, ...]:
    """Every test function, file by file."""
    return tuple(test for path in _files() for test in _read(path)[0])


def misplaced() -> Iterator[str]:
    """Markers that do not stand above a test function, where nobody would read them."""
    for path in _files():
        found, marks = _read(path)
        if more := marks - sum(len(test.marks) for test in found):
            yield f"{path.relative_to(ROOT)}: {more} markers do not stand above a test function"


def _files() -> list[Path]:
    return sorted((ROOT / "tests").rglob("*.py"))


@cache
def _read(path: Path) -> tuple[list[MarkedTest], int]:
    """The tests of a file, and how many markers there are anywhere in it."""
    found: list[MarkedTest] = []
    marks = 0
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        marks += _kind(node) is not None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            own = tuple(_mark(one) for one in node.decorator_list if _kind(one))
            found.append(MarkedTest(str(path.relative_to(ROOT)), node.name, own))
    return (found if path.name.startswith("test_") else []), marks


def _kind(node: ast.AST) -> str | None:
    """`behaviour` for the call `pytest.mark.behaviour(…)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return (
        node.func.attr if ast.unparse(node.func.value) == "pytest.mark" and node.func.attr in KINDS else None
    )


def _mark(decorator: ast.expr) -> Mark:
    assert isinstance(decorator, ast.Call)
    return Mark(_kind(decorator) or "", tuple(str(ast.literal_eval(each)) for each in decorator.args))
