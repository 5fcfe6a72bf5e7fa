"""Windows itself is refused in words that say what to do, wherever somebody begins."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.waiting import LIMIT

WINDOWS = "import sys; sys.platform = 'win32'; "


def refused(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WINDOWS + code], capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.mark.parametrize("arguments", [["ps"], ["--help"], ["hook", "stop", "claude-code"], ["mcp"], []])
def test_the_command_line_names_wsl_and_ends(arguments: list[str]):
    done = refused(f"from meantime.app.main import main; sys.argv = ['meantime', *{arguments}]; main()")
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not run on Windows itself. Install it in WSL 2" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["Meantime", "Shell", "Settings"])
def test_the_library_names_wsl(name: str):
    done = refused(f"from meantime import {name}")
    assert done.returncode == 1
    assert (
        done.stderr.strip()
        .splitlines()[-1]
        .startswith("ImportError: Meantime does not run on Windows itself")
    )


def test_the_version_can_be_asked_for():
    done = refused("import meantime; print(meantime.__version__)")
    assert (done.returncode, done.stderr) == (0, "")
