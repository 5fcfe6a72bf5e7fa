"""The daemon as process 1 of a container: what is orphaned there is reaped, and exit codes stay true."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.waiting import LIMIT, until

from meantime.daemon.daemon_autostart import answers

from .conftest import Place
from .namespaces import can_unshare, children

APART = ["--pid", "--fork", "--mount-proc", "--kill-child"]
UNSHARE = ["unshare", *APART]
# Its supervisor is killed, so what it leaves is nobody's: it becomes a child of process 1, and ends there.
ORPHANS = "for n in 1 2 3; do setsid sleep 0.$n & done; kill -9 $PPID"


pytestmark = [
    pytest.mark.skipif(not can_unshare(*APART), reason="this user may not make a namespace"),
    pytest.mark.pythons,
]


class Container:
    """A daemon that is process 1 of a namespace, seen from outside of it."""

    def __init__(self, place: Place) -> None:
        program = [sys.executable, "-P", "-m", "meantime.app.daemon", "--foreground"]
        self.unshare = subprocess.Popen([*UNSHARE, *program], env=place.environ, stderr=subprocess.DEVNULL)
        until(lambda: answers(place.home), "the daemon answers")
        self.first = children(self.unshare.pid)[0]


@pytest.fixture
def container(place: Place) -> Iterator[Container]:
    one = Container(place)
    yield one
    one.unshare.kill()
    one.unshare.wait()


def test_process_1_reaps_its_orphans_and_keeps_exit_codes(place: Place, container: Container) -> None:
    def ended(command: str) -> dict[str, str]:
        given = {"thread": "a", "command": ["sh", "-c", command]}
        id = place.ask("POST", "/v1/tasks", given)["id"]
        return place.wait(id)

    for _ in range(3):
        assert ended(ORPHANS)["state"] == "lost"
    assert "exit code 7" in ended("exit 7")["error"]
    until(lambda: children(container.first, "Z") == [], "no zombie is left")

    os.kill(container.first, signal.SIGTERM)
    assert container.unshare.wait(LIMIT) == 0
    assert not place.home.http_socket.exists()


def test_a_daemon_that_cannot_start_says_so_with_its_exit_code(place: Place) -> None:
    place.configure("[http]\nport = 'none'\n")
    program = [sys.executable, "-P", "-m", "meantime.app.daemon", "--foreground"]
    done = subprocess.run(
        [*UNSHARE, *program], env=place.environ, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 1
    assert "http.port" in done.stderr
