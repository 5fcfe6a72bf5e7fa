"""The daemon under a service manager: it says when it is ready, alive and stopping."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from .conftest import Place

pytestmark = pytest.mark.processes


class Manager:
    """Takes every message at once: a daemon drops those for which the socket has no room."""

    def __init__(self, talk: socket.socket, path: Path) -> None:
        talk.bind(str(path))
        self.address = str(path)
        self.told: list[bytes] = []
        self._talk = talk
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def until_told(self, message: bytes) -> None:
        until(lambda: message in self.told, f"the manager is told {message!r}", there=lambda: self.told)

    def close(self) -> None:
        self._talk.shutdown(socket.SHUT_RD)
        self._thread.join(LIMIT)

    def _listen(self) -> None:
        while message := self._talk.recv(100):
            self.told.append(message)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as talk:
        made = Manager(talk, tmp_path / "notify")
        yield made
        made.close()


def test_a_manager_is_told_of_the_start_the_life_and_the_end(place: Place, manager: Manager):
    environ = {**place.environ, "NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "2000000"}
    daemon = place.daemon("--foreground", env=environ)
    manager.until_told(b"READY=1")
    assert place.ask("GET", "/v1/health")
    manager.until_told(b"WATCHDOG=1")
    task = place.cli("run", "--no-env", "--wait", "--", "sh", "-c", "echo [$NOTIFY_SOCKET$WATCHDOG_USEC]")
    assert "[]" in task.stdout, task
    daemon.send_signal(signal.SIGTERM)
    daemon.communicate(timeout=LIMIT)
    assert daemon.returncode == 0
    manager.until_told(b"STOPPING=1")
    first, *watchdogs, last = manager.told
    assert (first, set(watchdogs), last) == (b"READY=1", {b"WATCHDOG=1"}, b"STOPPING=1")


def test_a_manager_is_told_that_another_daemon_serves_the_home(place: Place, manager: Manager):
    """Without a manager the second one leaves with 0: somebody serves the home, and that was asked for."""
    place.up()
    second = place.daemon("--foreground", env={**place.environ, "NOTIFY_SOCKET": manager.address})
    _, said = second.communicate(timeout=LIMIT)
    assert second.returncode == 1
    assert "meantime down --keep" in said
    third = place.daemon("--foreground")
    assert (third.communicate(timeout=LIMIT)[1], third.returncode) == ("", 0)


def test_a_daemon_in_the_foreground_can_log_to_its_own_file(place: Place):
    daemon = place.daemon("--foreground", "--log-file")
    until(lambda: f"process {daemon.pid}" in place.log(), "the log names the daemon", there=place.log)
    place.down()
    _, said = daemon.communicate(timeout=LIMIT)
    assert (daemon.returncode, said) == (0, "")
