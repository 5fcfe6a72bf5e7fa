"""The examples run, from a bare checkout, without a key or a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(example: str, folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)}
    command = [sys.executable, str(ROOT / "examples" / example)]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert list(folder.iterdir()) == [], "it left files behind"
    return done.stdout


def test_demo(tmp_path: Path):
    began = time.monotonic()
    text = run("demo.py", tmp_path)
    assert time.monotonic() - began < 15
    assert [int(number) for number in re.findall(r"^  \[(\d)\]", text, re.MULTILINE)] == [*range(1, 9)]
    assert "each told once, in the order of completion" in text


def test_agent_loop(tmp_path: Path):
    lines = run("agent_loop.py", tmp_path).splitlines()
    assert [line for line in lines if line.startswith("notice")] == ["notice > run_tests completed"]
    assert lines[-1] == " agent > Nothing is running."


def test_every_example_is_tested():
    assert {file.name for file in (ROOT / "examples").glob("*.py")} == {"demo.py", "agent_loop.py"}
