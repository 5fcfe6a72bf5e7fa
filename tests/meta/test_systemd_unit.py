"""The systemd unit of docs/guides/daemon.md: it is whole, and leaves the commands alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "daemon.md"


@pytest.fixture
def unit() -> str:
    [found] = re.findall(r"^```ini\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return found


def test_it_says_all_that_matters(unit: str):
    parsed = ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read_string(unit)
    assert parsed.sections() == ["Unit", "Service", "Install"]
    service = dict(parsed["Service"])
    assert service["ExecStart"].endswith("/meantime up --foreground")
    assert (service["Type"], service["KillMode"], service["Restart"]) == ("exec", "process", "on-failure")
    assert service["OOMPolicy"] == "continue"
    assert re.findall(r"^Environment=(\w+)=", unit, re.MULTILINE) == ["MEANTIME_HOME", "MEANTIME_CONFIG"]
    assert parsed["Install"]["WantedBy"] == "default.target"


def test_systemd_itself_has_nothing_to_complain_of(unit: str, tmp_path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = tmp_path / ".local/bin/meantime"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    file = tmp_path / "meantime.service"
    file.write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "--user", "--recursive-errors=no", "verify", str(file)],
        env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
