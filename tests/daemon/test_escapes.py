"""Agents and functions in the daemon's own process that try to end it: their runs fail, and it goes on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from meantime.daemon.owner_process import owner

from .conftest import Place
from .test_upgrade import is_alive, started

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "runtime"))

from escaping import AGENTS, FUNCTIONS, WAYS  # noqa: E402

AGENT = '[agents.{name}]\nrunner = "python"\nagent = "escaping:{name}"\n'


def test_nothing_that_runs_in_the_daemon_can_end_it(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT / "tests" / "runtime"), str(ROOT))))
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(3)\n")
    agents = "".join(AGENT.format(name=name) for name in AGENTS)
    place.configure(f'tools = ["escaping"]\n[http]\nport = 0\n[limits]\nper_thread = -1\n{agents}')
    pid = place.up()
    beside = started(place, tmp_path)
    orders = [{"agent": name, "prompt": way} for name in AGENTS for way in WAYS]
    orders += [{"tool": name, "arguments": {"way": way}} for name in FUNCTIONS for way in WAYS]
    ids = [place.ask("POST", "/v1/tasks", {"thread": "a", **order})["id"] for order in orders]
    for id, order in zip(ids, orders, strict=True):
        ended = place.wait(id)
        assert ended["state"] == "failed", (order, ended)

    found = owner(place.home)
    assert found is not None
    assert found.pid == pid, "it is the same daemon"
    assert is_alive(tmp_path)
    (tmp_path / "go").touch()
    ended = place.wait(beside["id"])
    assert "exit code 7" in ended["error"]
