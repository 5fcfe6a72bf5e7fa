"""The tests of the adapters for agent frameworks, in the environment that has the frameworks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "frameworks"
PYTHON = ROOT / ".frameworks" / "bin" / "python"
FOLDERS = sorted(folder.parent for folder in TESTS.glob("*/__init__.py"))
APART = {
    "claude_sdk"
}  # a process is started for each turn: each of its files runs by itself, beside the others
PARTS = [
    str(part.relative_to(TESTS))
    for folder in FOLDERS
    for part in (sorted(folder.glob("test_*.py")) if folder.name in APART else [folder])
]
LONGEST = 500  # seconds; a test has its own limit

pytestmark = [
    pytest.mark.slow,
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


@pytest.mark.parametrize("part", PARTS)
def test_the_tests_of_an_adapter_pass_with_its_framework(part: str):
    assert " passed" in done(PYTHON, "-m", "pytest", "-q", "-c", "pytest.ini", part)


def test_the_adapters_have_the_types_of_their_frameworks():
    """Where the frameworks are not installed, everything of theirs would be unknown."""
    assert "0 errors" in done(ROOT / ".venv" / "bin" / "pyright", "-p", ".")
