"""A package that is not installed is named, with the command that installs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime.surfaces.cli.verb_table import loaded
from meantime.surfaces.terminal.errors import CliError


@pytest.mark.parametrize(
    ("package", "installed_by"),
    [("starlette", "pip install 'meantime[server]'"), ("psutil", "pip install psutil")],
)
def test_the_extra_is_named_for_its_own_packages_only(
    package: str, installed_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    module = f"verb_that_needs_{package}"
    (tmp_path / f"{module}.py").write_text(f"import {package}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(CliError) as refused:
        loaded("verb", f"{module}:command")
    assert refused.value.what == f"`verb` needs {package}, which is not installed."
    assert refused.value.hint == installed_by


def test_the_posix_path_without_psutil_is_refused_before_a_daemon_is_started(tmp_path: Path):
    code = "import sys; sys.modules['psutil'] = None; from meantime.app.main import main; main()"
    environ = {**os.environ, "MEANTIME_PLATFORM": "posix", "MEANTIME_HOME": str(tmp_path / "home")}
    words = [sys.executable, "-c", code, "run", "--", "true"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2
    assert "needs psutil, which is not installed: pip install psutil" in done.stderr
    assert not (tmp_path / "home").exists()


def test_the_library_names_psutil_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    monkeypatch.delitem(sys.modules, "meantime.system.platform.posix", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install psutil"):
        __import__("meantime.system.platform.posix")
