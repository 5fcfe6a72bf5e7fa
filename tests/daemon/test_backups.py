"""A home is backed up while its daemon works: every backup is whole, and what it restores harms nobody."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from meantime.daemon.owner_process import owner

from .conftest import Place
from .test_upgrade import is_alive, started, told

pytestmark = pytest.mark.processes

BACKUPS = 3
LONG = ["sh", "-c", "head -c 60000 /dev/zero | tr '\\0' z"]


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Place]:
    """Where it is restored."""
    folder = tmp_path / "other"
    folder.mkdir()
    made = Place(folder)
    yield made
    if owner(made.home) is not None:
        made.down(signal.SIGUSR1)


def test_told_stays_told_and_what_ran_is_lost_once(place: Place, other: Place, tmp_path: Path) -> None:
    place.up()
    first = place.ask("POST", "/v1/tasks", {"thread": "conversation", "command": ["true"]})["id"]
    place.wait(first)
    assert told(place) == [f"{first}.1"]
    second = place.ask("POST", "/v1/tasks", {"thread": "conversation", "command": LONG})["id"]
    place.wait(second)
    running = started(place, tmp_path)["id"]

    file = tmp_path / "all.tar"
    done = place.cli("backup", str(file), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) | {"file": "", "bytes": 0} == {
        "file": "", "bytes": 0, "ok": True, "tasks": 3, "active": 1, "untold": 1, "findings": [],
    }  # fmt: skip
    refused = place.cli("restore", str(file))
    assert refused.returncode == 1
    assert "meantime down" in refused.stderr

    assert other.cli("restore", str(file)).returncode == 0
    assert other.cli("audit").returncode == 0
    other.up()
    assert other.wait(running)["state"] == "lost"
    assert told(other) == [f"{second}.1", f"{running}.1"]
    assert told(other) == []
    assert len(other.ask("GET", f"/v1/tasks/{second}/result")["result"]) == 60_000
    assert other.cli("audit").returncode == 0
    other.down(signal.SIGUSR1)
    assert is_alive(tmp_path)
    place.down(signal.SIGUSR1)


def test_backups_under_load_are_whole(place: Place, other: Place, tmp_path: Path) -> None:
    """Tasks with long outputs begin, end and are deleted meanwhile."""
    place.up()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            ids = [
                place.ask("POST", "/v1/tasks", {"thread": "a", "command": LONG, "id": None})["id"]
                for _ in range(4)
            ]
            for id in ids:
                place.wait(id)
            place.cli("prune", "--older-than", "1s", "--yes")

    working = threading.Thread(target=work)
    working.start()
    try:
        for number in range(BACKUPS):
            backup = place.cli("backup", str(tmp_path / f"{number}.tar"))
            assert backup.returncode == 0, backup.stderr
    finally:
        done.set()
        working.join()
    assert not list(place.home.folder.glob("*.backup-*"))
    for number in range(BACKUPS):
        other.home = type(other.home)(tmp_path / "other" / f"home-{number}", other.home.config)
        restored = other.cli("restore", str(tmp_path / f"{number}.tar"))
        assert restored.returncode == 0, restored.stderr
        audit = other.cli("audit")
        assert audit.returncode == 0, audit.stdout
        other.up()
        for task in other.ask("GET", "/v1/tasks?status=completed&limit=100")["tasks"]:
            assert len(other.ask("GET", f"/v1/tasks/{task['id']}/result")["result"]) == 60_000
        other.down(signal.SIGUSR1)
    place.down(signal.SIGUSR1)
