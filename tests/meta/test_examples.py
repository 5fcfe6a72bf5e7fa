"""The examples run, from a bare checkout, without a key or a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]


def run(example: str, folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(folder)}
    command = [sys.executable, str(ROOT / "examples" / example)]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert list(folder.iterdir()) == [], "it left files behind"
    return done.stdout


def test_the_example_of_an_agent_loop_tells_its_notice(tmp_path: Path):
    lines = run("agent_loop.py", tmp_path).splitlines()
    assert [line for line in lines if line.startswith("notice")] == ["notice > run_tests completed"]
    assert lines[-1] == " agent > The tests are through: 128 passed."


def test_pydantic_ai_agent(tmp_path: Path):
    lines = run("pydantic_ai_agent.py", tmp_path).splitlines()
    assert lines == [
        " user > Please test src, and look for open questions.",
        "agent > Both are on their way.",
        " user > How is it going?",
        "agent > 2 tasks are still running.",
        "agent > The tests are through: src: 128 passed.",
        "agent > The explorer found: two open questions.",
    ]


def test_every_example_is_tested():
    """openai_loop.py needs a model: tests/examples has one."""
    tested = {"agent_loop", "openai_loop", "pydantic_ai_agent", "remind_later", "watched_server"}
    assert {file.stem for file in (ROOT / "examples").glob("*.py")} == tested


def test_a_watched_server_tells_each_error_once(tmp_path: Path):
    lines = run("watched_server.py", tmp_path).splitlines()
    assert sorted(lines) == [
        " event | errors | 'ERROR: request 1 failed'",
        " event | errors | 'ERROR: request 2 failed'",
        "ending | errors | 'matched 2 times until its task ended'",
        "ending | is it up? | 'matched once\\nlistening on 8080'",
    ]


def test_the_example_of_reminders_is_told_both(tmp_path: Path):
    assert run("remind_later.py", tmp_path).splitlines() == [
        " alarm > ask whether the deploy is up",
        "ending > 128 passed",
    ]
