"""Counts the functions below a folder by parsing every file. The demo copies it, and runs it as a command."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from pathlib import Path

PASSED_OVER = ("site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__")


def count(file: Path) -> int:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError):  # a broken link, or a file that is wrong on purpose
        return 0
    return sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in ast.walk(tree))


def main(folder: str) -> None:
    warnings.simplefilter("ignore")
    functions = 0
    for path, inner, files in os.walk(folder):
        inner[:] = [name for name in inner if name not in PASSED_OVER]
        for name in files:
            if name.endswith(".py"):
                functions += count(Path(path, name))
    sys.stdout.write(f"{functions:,} functions\n")


if __name__ == "__main__":
    main(sys.argv[1])
