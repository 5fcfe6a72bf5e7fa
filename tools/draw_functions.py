"""Draws twenty-five functions of src/ at random, for a test of its names on a reader.

    python tools/draw_functions.py [COMMIT]

The hash of the commit (default: HEAD) is the seed, so the draw can be repeated and not be chosen. For each
function one line is written that says what it does, without its name. A reader who has not seen the code gets
the lines and a list of the files, and names the file of each. docs/internals/reader-test.md has the answers.
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/meantime"
DRAWN = 25
SHORTEST = 4  # lines: a shorter one says nothing that its name does not say


class Function(NamedTuple):
    file: str
    name: str
    line: int


def functions(source: Path = SOURCE) -> Iterator[Function]:
    """All functions and methods but dunder ones and stubs, in the order of their files."""
    for path in sorted(source.rglob("*.py")):
        file = path.relative_to(source).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _counts(node):
                yield Function(file, node.name, node.lineno)


def _counts(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return (node.end_lineno or 0) - node.lineno + 1 >= SHORTEST and not node.name.startswith("__")


def drawn(seed: str) -> list[Function]:
    """In the order of the draw: sorted lines would tell their reader where to look."""
    return random.Random(seed).sample(list(functions()), DRAWN)


def main(arguments: list[str]) -> None:
    name = arguments[0] if arguments else "HEAD"
    seed = subprocess.run(["git", "rev-parse", name], cwd=ROOT, capture_output=True, text=True, check=True)
    print(f"seed {seed.stdout.strip()}")  # noqa: T201 - a tool
    for number, one in enumerate(drawn(seed.stdout.strip()), 1):
        print(f"{number:2}  {one.file}:{one.line}  {one.name}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
