"""The tests of the adapters for agent frameworks, in the environment that has the frameworks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "frameworks"
PYTHON = ROOT / ".frameworks" / "bin" / "python"
FOLDERS = {folder.parent.name for folder in TESTS.glob("*/__init__.py")}
# Each part is one process, as frameworks take seconds to load. Claude Code is started for each turn of its
# agents, so that their tests take as long as all the others: they are two parts.
PARTS = (
    ("claude_sdk/test_turns.py",),
    ("claude_sdk", "--ignore=claude_sdk/test_turns.py"),
    ("langchain_agents", "protocol_clients"),
    ("extras", "google_adk", "microsoft", "openai_agents"),
)
LONGEST = 10 * LIMIT  # seconds; a test has its own limit

pytestmark = [
    pytest.mark.timeout(LONGEST + LIMIT),
    pytest.mark.frameworks,
    pytest.mark.skipif(
        not (ROOT / ".frameworks" / ".ready").exists() and os.environ.get("CI") != "true",
        reason="make frameworks installs them",
    ),
]


def done(*command: str | Path) -> str:
    """Says what it printed, if it failed."""
    ran = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, timeout=LONGEST, check=False)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part[0])
def test_the_tests_of_the_adapters_pass_with_their_frameworks(part: tuple[str, ...]):
    assert " passed" in done(PYTHON, "-m", "pytest", "-q", "-c", "pytest.ini", *part)


def test_each_adapter_is_in_a_part():
    assert {given.partition("/")[0] for part in PARTS for given in part if given[0] != "-"} == FOLDERS


def test_the_adapters_have_the_types_of_their_frameworks():
    """Where the frameworks are not installed, everything of theirs would be unknown."""
    assert "0 errors" in done(ROOT / ".venv" / "bin" / "pyright", "-p", ".")
