"""Commands go on while there is no daemon: the same task, its true exit code, told once."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from .conftest import Place

pytestmark = pytest.mark.processes

THREAD = "conversation"
WAITING = 'echo $$ > "$1/pid"; while [ ! -e "$1/go" ]; do sleep 0.02; done; echo over; exit 7'


def started(place: Place, folder: Path) -> dict[str, Any]:
    command = ["sh", "-c", WAITING, "sh", str(folder)]
    task = place.ask("POST", "/v1/tasks", {"thread": THREAD, "command": command})
    pid = folder / "pid"
    until(lambda: pid.exists() and pid.read_text().endswith("\n"), "the command runs")
    return task


def is_alive(folder: Path) -> bool:
    return Path(f"/proc/{(folder / 'pid').read_text().strip()}").exists()


def told(place: Place) -> list[str]:
    turn = place.ask("POST", f"/v1/threads/{THREAD}/turns", {"lease": 600})
    ids = [notice["id"] for notice in turn["notices"]]
    place.ask("POST", f"/v1/turns/{turn['turn']}/ack", {"notices": ids})
    return ids


@pytest.mark.core("the one daemon that is replaced, in every way")
@pytest.mark.parametrize("how", ["down --keep", "down", "kill -9"])
def test_a_command_runs_on(place: Place, tmp_path: Path, how: str) -> None:
    first = place.up()
    task = started(place, tmp_path)
    if how == "kill -9":
        place.kill()
    else:
        assert place.cli(*how.split()).returncode == 0
    assert is_alive(tmp_path)

    assert place.up() != first
    assert place.ask("GET", f"/v1/tasks/{task['id']}")["state"] == "running"
    (tmp_path / "go").touch()
    ended = place.wait(task["id"])
    assert (ended["id"], ended["state"]) == (task["id"], "failed")
    assert "exit code 7" in ended["error"]
    assert place.ask("GET", f"/v1/tasks/{task['id']}/output")["data"] == "over\n"
    assert told(place) == [f"{task['id']}.1"]
    assert told(place) == []
    audit = place.cli("audit")
    assert audit.returncode == 0, audit.stdout


def test_a_command_that_ends_meanwhile_is_told_of(place: Place, tmp_path: Path) -> None:
    place.up()
    task = started(place, tmp_path)
    place.down()
    (tmp_path / "go").touch()
    until(lambda: not is_alive(tmp_path), "the command has ended")
    place.up()
    assert "exit code 7" in place.wait(task["id"])["error"]
    assert told(place) == [f"{task['id']}.1"]


def test_down_can_stop_them(place: Place, tmp_path: Path) -> None:
    place.up()
    task = started(place, tmp_path)
    assert place.cli("down", "--stop").returncode == 0
    assert not is_alive(tmp_path)
    place.up()
    assert place.ask("GET", f"/v1/tasks/{task['id']}")["state"] == "cancelled"
    assert told(place) == [f"{task['id']}.1"]


def test_a_term_does_as_configured(place: Place, tmp_path: Path) -> None:
    place.configure('[http]\nport = 0\n[runtime]\non_close = "stop"\n')
    place.up()
    started(place, tmp_path)
    place.down(signal.SIGTERM)
    assert not is_alive(tmp_path)


def test_down_keeps_them_whatever_is_configured(place: Place, tmp_path: Path) -> None:
    place.configure('[http]\nport = 0\n[runtime]\non_close = "stop"\n')
    place.up()
    started(place, tmp_path)
    assert place.cli("down").returncode == 0
    assert is_alive(tmp_path)
    place.up()
    (tmp_path / "go").touch()
