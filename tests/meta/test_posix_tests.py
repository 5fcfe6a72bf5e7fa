"""Tests with the POSIX path: a selection of them, and the list of those that need Linux."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import write_posix_tests as tool
from tests.waiting import LIMIT

pytestmark = pytest.mark.pythons

CORE = ["tests/shell/test_stopping.py", "-k", "sqlite and (sends_sigterm or sessions)"]
MORE = [
    "tests/system", "tests/shell/test_stopping.py", "tests/shell/test_restart.py",
    "tests/app/test_leader.py", "tests/daemon/test_starting.py",
]  # fmt: skip
PLANTED = "tests/posix_mode/planted.py"


def run(*chosen: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--platform=posix",
        "--family=core",
        "--family=processes",
    ]
    environ = {name: value for name, value in os.environ.items() if name != "MEANTIME_TEST_REFUSALS"}
    return subprocess.run(
        [*command, *chosen], cwd=tool.ROOT, env=environ, capture_output=True, text=True, timeout=5 * LIMIT
    )


def test_the_page_lists_every_test_that_needs_linux():
    assert tool.PAGE.read_text() == tool.page(), "python tools/write_posix_tests.py"


def test_every_exception_has_a_reason():
    for file, test, reason in tool.left_out():
        assert len(reason) > 15, f"{file}: {test}"


@pytest.mark.linux_only("it starts a run with the other path itself")
@pytest.mark.parametrize("chosen", [CORE, MORE], ids=["core", "more"])
def test_commands_and_daemons_hold_without_what_only_linux_has(chosen: list[str]):
    done = run(*chosen)
    assert done.returncode == 0, done.stdout[-6_000:]
    assert re.search(r"\d+ passed", done.stdout)


@pytest.mark.linux_only("it starts a run with the other path itself")
def test_a_module_of_ours_that_asks_for_proc_is_refused_and_fails_the_run():
    """The judge can fail: the modules for Linux are called under it, in this process and in a bare Python."""
    done = run(PLANTED)
    assert "2 passed" in done.stdout, done.stdout
    assert done.stdout.count("system/platform/linux.py") >= 2
    assert "asks for /proc/1/stat" in done.stdout
    assert done.returncode == 1
