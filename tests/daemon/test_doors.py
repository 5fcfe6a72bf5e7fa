"""The socket is what counts; a port is had where it can be."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest

from .conftest import Place

pytestmark = pytest.mark.processes


@pytest.fixture
def busy() -> Iterator[int]:
    """The first of ten ports that are all taken."""
    with ExitStack() as held:
        while True:
            first = random.randrange(20_000, 30_000)
            try:
                for port in range(first, first + 10):
                    one = held.enter_context(socket.socket())
                    one.bind(("127.0.0.1", port))
                    one.listen()
            except OSError:
                held.pop_all().close()
                continue
            yield first
            return


def test_ten_busy_ports_leave_the_systems_choice(place: Place, busy: int) -> None:
    place.configure(f"[http]\nport = {busy}\n")
    place.up()
    url = place.ask("GET", "/v1/info")["url"]
    port = int(url.rpartition(":")[2])
    assert port not in range(busy, busy + 10)
    assert msgspec.json.decode(place.home.discovery.read_bytes())["port"] == port


def test_an_address_that_cannot_be_had_does_not_stop_it(place: Place) -> None:
    place.configure('[http]\nhost = "192.0.2.1"\nallow_remote = true\n')  # an address of nobody's
    place.up()
    assert place.ask("GET", "/v1/info")["url"] == ""
    assert "HTTP is not served on a port: " in place.log()
    assert not place.home.discovery.exists()
    status = place.cli("status")
    assert status.returncode == 0
    assert "none on a port" in status.stdout


def test_without_a_port_by_choice(place: Place) -> None:
    place.configure("[http]\nenabled = false\n")
    place.up()
    assert place.ask("GET", "/v1/info")["url"] == ""
    assert "HTTP is not served" not in place.log()
    status = msgspec.json.decode(place.cli("status", "--json").stdout)
    assert (status["running"], status["info"]["home"]) == (True, str(place.home.folder))


def test_caps_are_those_of_the_configuration(place: Place) -> None:
    place.configure(
        "[http]\nport = 0\nbody_bytes = 200\n[limits]\nper_thread = 3\n[agents]\ntask_max_async = 2\n"
    )
    place.up()
    limits = place.ask("GET", "/v1/info")["limits"]
    assert (limits["perThread"], limits["perKind"]) == (3, {"agent": 2})
    with pytest.raises(AssertionError, match="body_too_big"):
        place.ask("POST", "/v1/tasks", {"command": "true", "description": "x" * 300})


def test_settings_for_one_daemon(place: Place) -> None:
    up = place.cli("up", "--set", "limits.total=7", "--set", "http.enabled=false")
    assert up.returncode == 0, up.stderr
    info = place.ask("GET", "/v1/info")
    assert (info["limits"]["total"], info["url"]) == (7, "")
    again = place.cli("up", "--set", "limits.total=8")
    assert (again.returncode, "meantime down" in again.stderr) == (1, True)
    assert place.cli("up", "--set", "foo.bar=1").returncode == 2
    place.down()
    assert place.cli("up", "--set", "total").returncode == 2
    wrong = place.cli("up", "--set", "limits.total=many")
    assert (wrong.returncode, "limits.total" in wrong.stderr) == (5, True)
