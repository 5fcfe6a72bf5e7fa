"""A type checker compares the arguments of a Call with the function's own, and knows what a result is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.docs

PROGRAM = """
from meantime import Call, Meantime, background
from meantime.blocking import Meantime as Blocking


def index(path: str, depth: int = 1) -> list[str]:
    return [path] * depth


async def fetch(url: str) -> bytes:
    return url.encode()


@background
async def crawl(url: str, pages: int) -> int:
    return pages


Call(index, "src", dept=2)  # wrong: dept
Call(index, 3)  # wrong: int
Call(fetch)  # wrong: missing
crawl.work("a", pages="b")  # wrong: str
Call(index, "src", depth=2)
Call(fetch, url="a")


async def main(mt: Meantime) -> None:
    thread = mt.thread("a")
    reveal_type(await (await thread.start(Call(index, "src"))).result())
    reveal_type(await (await thread.start(Call(fetch, "src"))).result())
    reveal_type(await (await thread.batch("b").start(crawl.work("a", 1))).result())


def blocking(mt: Blocking) -> None:
    reveal_type(mt.thread("a").start(Call(index, "src")).result())
"""
SETTINGS = {"typeCheckingMode": "strict", "include": ["program.py"]}


def test_pyright_finds_wrong_arguments_and_knows_the_result(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    found = json.loads(checked.stdout)["generalDiagnostics"]
    lines = PROGRAM.splitlines()
    wrong = {lines[one["range"]["start"]["line"]] for one in found if one["severity"] == "error"}
    assert wrong == {line for line in lines if "# wrong" in line}, found
    types = [one["message"].partition(" is ")[2] for one in found if one["severity"] == "information"]
    assert types == ['"list[str]"', '"bytes"', '"int"', '"list[str]"']
