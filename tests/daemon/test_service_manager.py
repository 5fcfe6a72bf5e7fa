"""The daemon under a service manager: it says when it is ready, alive and stopping."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import PATIENCE, Place, eventually


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(PATIENCE)
        yield made


def test_a_manager_is_told_of_the_start_the_life_and_the_end(place: Place, manager: socket.socket):
    environ = {**place.environ, "NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "2000000"}
    daemon = place.daemon("--foreground", env=environ)
    assert manager.recv(100) == b"READY=1"
    assert place.ask("GET", "/v1/health")
    assert manager.recv(100) == b"WATCHDOG=1"
    task = place.cli("run", "--no-env", "--wait", "--", "sh", "-c", "echo [$NOTIFY_SOCKET$WATCHDOG_USEC]")
    assert "[]" in task.stdout, task
    daemon.send_signal(signal.SIGTERM)
    while (said := manager.recv(100)) == b"WATCHDOG=1":
        pass
    assert said == b"STOPPING=1"
    daemon.communicate(timeout=PATIENCE)
    assert daemon.returncode == 0


def test_a_manager_is_told_that_another_daemon_serves_the_home(place: Place, manager: socket.socket):
    """Without a manager the second one leaves with 0: somebody serves the home, and that was asked for."""
    place.up()
    second = place.daemon("--foreground", env={**place.environ, "NOTIFY_SOCKET": manager.getsockname()})
    _, said = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1
    assert "meantime down --keep" in said
    third = place.daemon("--foreground")
    assert (third.communicate(timeout=PATIENCE)[1], third.returncode) == ("", 0)


def test_a_daemon_in_the_foreground_can_log_to_its_own_file(place: Place):
    daemon = place.daemon("--foreground", "--log-file")
    eventually(lambda: f"process {daemon.pid}" in place.log(), "the log names the daemon")
    place.down()
    _, said = daemon.communicate(timeout=PATIENCE)
    assert (daemon.returncode, said) == (0, "")
