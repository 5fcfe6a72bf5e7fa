"""The lessons and tests/runtime with their work at a worker, and the list of those that stay."""

from __future__ import annotations

import subprocess
import sys

import pytest
import write_placed_tests as tool
from tests.waiting import LIMIT

pytestmark = pytest.mark.pythons

CORE = ["tests/fundamentals", "-k", "hand_off or told_once or cancel or limits or commands"]
ALL = ["tests/fundamentals", "tests/runtime"]
NATS = [*CORE[:2], "hand_off or told_once or cancel or progress or commands or logs", "--carrier=nats"]


def test_the_page_lists_every_test_that_stays_with_its_owner():
    assert tool.PAGE.read_text() == tool.page(), "python tools/write_placed_tests.py"


def test_every_exception_has_a_reason():
    for file, test, reason in tool.left_out():
        assert len(reason) > 20, f"{file}: {test}"


@pytest.mark.parametrize(
    "chosen",
    [CORE, ALL, NATS],
    ids=["core", "all", "over NATS"],
)
def test_lessons_hold_with_their_work_at_a_worker(chosen: list[str]):
    pytest_call = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--place=worker",
        "--family=core",
        "--family=breadth",
    ]
    command = [*pytest_call, *chosen]
    done = subprocess.run(command, cwd=tool.ROOT, capture_output=True, text=True, timeout=5 * LIMIT)
    assert done.returncode == 0, done.stdout[-4_000:]
