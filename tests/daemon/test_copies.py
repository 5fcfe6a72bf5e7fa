"""P11: a daemon in a copied home leaves the commands of the original alone; a moved home is not a copy."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from meantime.daemon.owner_process import owner

from .conftest import Place
from .test_upgrade import is_alive, started, told

pytestmark = pytest.mark.processes


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Place]:
    """Somebody else's place, whose home is still to come."""
    folder = tmp_path / "other"
    folder.mkdir()
    made = Place(folder)
    yield made
    if owner(made.home) is not None:
        made.down(signal.SIGUSR1)


@pytest.mark.behaviour("P11")
def test_a_daemon_in_a_copied_home_leaves_the_originals_commands_alone(
    place: Place, other: Place, tmp_path: Path
) -> None:
    place.up()
    task = started(place, tmp_path)
    subprocess.run(["cp", "-a", str(place.home.folder), str(other.home.folder)], check=True)
    other.up()
    lost = other.ask("GET", f"/v1/tasks/{task['id']}")
    assert (lost["state"], "copy" in lost["error"]) == ("lost", True), lost
    assert told(other) == [f"{task['id']}.1"]
    other.down(signal.SIGUSR1)
    assert is_alive(tmp_path)

    (tmp_path / "go").touch()
    ended = place.wait(task["id"])
    assert "exit code 7" in ended["error"]
    assert told(place) == [f"{task['id']}.1"]


@pytest.mark.behaviour("P4")
def test_a_daemon_in_a_moved_home_finds_its_commands_again(
    place: Place, other: Place, tmp_path: Path
) -> None:
    place.up()
    task = started(place, tmp_path)
    place.down()
    place.home.folder.rename(other.home.folder)
    other.up()
    assert other.ask("GET", f"/v1/tasks/{task['id']}")["state"] == "running"
    (tmp_path / "go").touch()
    ended = other.wait(task["id"])
    assert "exit code 7" in ended["error"]
    assert other.ask("GET", f"/v1/tasks/{task['id']}/output")["data"] == "over\n"
