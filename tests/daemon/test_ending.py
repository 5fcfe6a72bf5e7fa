"""How a daemon ends, what it leaves behind, and what it does not mind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import until

from meantime.daemon.daemon_autostart import NoDaemon, answers, ensure
from meantime.daemon.owner_process import owner, terminate

from .conftest import Place

pytestmark = pytest.mark.processes


@pytest.mark.scenario(
    "001", "Server stops gracefully on process exit", "server.json deleted on graceful shutdown"
)
def test_a_term_takes_its_files_away(place: Place) -> None:
    place.up()
    assert place.home.discovery.exists()
    place.down()
    left = {path.name for path in place.home.folder.iterdir()}
    assert left == {"daemon.log", "ledger.db", "ledger.db.lock", "starting.lock", "token"}
    assert json.loads(Path(f"{place.home.ledger}.lock").read_text())["clean"] is True


def test_more_signals_are_harmless(place: Place) -> None:
    pid = place.up()
    os.kill(pid, signal.SIGHUP)
    assert place.ask("GET", "/v1/health")["status"] == "ok"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
        with contextlib.suppress(ProcessLookupError):  # the first of them has ended it already
            os.kill(pid, number)
    # The ledger is given back a moment earlier.
    until(lambda: place.log().endswith("INFO Closed.\n"), "the log ends", there=place.log)
    assert owner(place.home) is None
    assert place.log().count("INFO Closing.") == 1


@pytest.mark.linux_only("it executes a program that does not inherit the choice of the platform")
def test_it_outlives_its_terminal(place: Place) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.execve(sys.executable, [sys.executable, "-m", "meantime", "up"], place.environ)
    said = b""
    while b"The daemon is up" not in said:
        said += os.read(terminal, 1000)
    pid = place.up()
    os.close(terminal)
    os.waitpid(child, 0)
    assert place.ask("GET", "/v1/info")["pid"] == pid


def test_one_that_hangs_is_said(place: Place) -> None:
    pid = place.up()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(NoDaemon, match=r"did not answer within 0\.2 seconds") as caught:
            ensure(place.home, wait=0.2)
        assert str(place.home.log) in caught.value.hint
        assert not terminate(place.home, pid, signal.SIGTERM, 0.1)
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: owner(place.home) is None, "it has ended")


def test_what_a_killed_one_left_is_replaced(place: Place) -> None:
    killed = place.up()
    old = place.home.discovery.read_bytes()
    place.kill()
    assert place.home.http_socket.exists()
    assert place.home.discovery.read_bytes() == old
    assert not answers(place.home)
    doctor = json.loads(place.cli("doctor", "--json").stdout)
    assert [row["level"] for row in doctor["checks"] if row["name"] == "stale"] == ["warn"]

    assert place.up() != killed
    found = json.loads(place.home.discovery.read_text())
    assert found["pid"] == place.ask("GET", "/v1/info")["pid"] != killed


def test_a_pid_that_is_somebody_elses_now_is_not_trusted(place: Place) -> None:
    place.up()
    killed = place.kill()
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        try:
            for path in (place.home.discovery, Path(f"{place.home.ledger}.lock")):
                path.write_text(path.read_text().replace(str(killed), str(stranger.pid)))
            assert owner(place.home) is None
            down = place.cli("down")
            assert (down.returncode, down.stdout) == (0, "The daemon was not running.\n")
            assert place.cli("status").returncode == 5
            assert place.up() != stranger.pid
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_without_its_home_it_ends(place: Place) -> None:
    pid = place.up()
    shutil.rmtree(place.home.folder)
    until(lambda: not Path(f"/proc/{pid}").exists(), "it has ended")
    assert place.up() != pid


def test_down_does_not_lose_what_is_queued(place: Place) -> None:
    """Values of variables are never stored, so the next daemon could not start these."""
    place.configure("[http]\nport = 0\n[limits]\ntotal = 1\n")
    place.up()
    place.ask("POST", "/v1/tasks", {"id": "runs", "command": ["sleep", "3600"]})
    place.ask("POST", "/v1/tasks", {"id": "stays", "command": ["true"]})
    down = place.cli("down")
    assert (down.returncode, down.stderr) == (0, "")

    place.up()
    assert place.ask("GET", "/v1/tasks/stays")["state"] == "queued"
    for id in ("one", "two"):
        place.ask("POST", "/v1/tasks", {"id": id, "command": ["env"], "environment": {"A": "1"}})
    for meaning in ("--keep", "--stop"):
        down = place.cli("down", meaning)
        assert down.returncode == 1
        assert down.stderr == (
            "meantime: 2 queued commands would be lost: their environment is not kept.\n"
            "  Wait for them, cancel them, or: meantime down --lose-queued\n"
        )
    place.ask("POST", "/v1/tasks/one/cancel")
    assert "1 queued command would be lost: its environment" in place.cli("down").stderr
    assert place.cli("down", "--lose-queued").returncode == 0

    place.up()
    lost = place.ask("GET", "/v1/tasks/two")
    assert (lost["state"], lost["restartable"]) == ("lost", False)
    assert "its environment" in lost["error"]
    assert place.ask("GET", "/v1/tasks/runs")["state"] == "running"
