"""A daemon, its private NATS server and a worker, each a process of its own, killed with -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("workers")
MEANTIME = [sys.executable, "-m", "meantime.app.main"]


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = os.environ | {
            "MEANTIME_HOME": str(folder / "home"),
            "MEANTIME_CONFIG": str(folder / "config.toml"),
            "MEANTIME_HTTP_PORT": "0",
            "MEANTIME_ENGINE_CARRIER": "local",
        }
        self.workers: list[subprocess.Popen[bytes]] = []

    def run(self, *words: str) -> str:
        done = subprocess.run([*MEANTIME, *words], env=self.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def worker(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "worker.log").open("ab")
        worker = subprocess.Popen([*MEANTIME, "worker"], env=self.env, stdout=log, stderr=log)
        self.workers.append(worker)
        until(lambda: [one for one in self.json("workers")["workers"] if one["silent"] < 1])
        return worker

    def kill_daemon(self) -> None:
        os.kill(self.json("status")["info"]["pid"], signal.SIGKILL)
        until(lambda: subprocess.run([*MEANTIME, "status"], env=self.env, capture_output=True).returncode)

    def state(self, id: str) -> str:
        return self.json("show", id)["state"]


def until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    over = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < over, "it did not come to hold"
        time.sleep(0.05)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.run("up")
    try:
        yield machine
    finally:
        for worker in machine.workers:
            worker.terminate()
            worker.wait(60)
        machine.run("down", "--stop")


def started(machine: Machine) -> str:
    line = f"echo begun; while [ ! -e {machine.folder}/go ]; do sleep 0.05; done; echo done"
    id = machine.run("run", "-q", "--place", "pool:default", "--thread", "conv", "-c", line).strip()
    until(lambda: machine.state(id) == "running")
    until(lambda: "begun" in machine.run("logs", id))
    return id


@pytest.mark.slow
def test_a_command_outlives_its_worker_and_its_owner(machine: Machine):
    """Both are killed with -9, one after the other; the command runs once, and its thread is told once."""
    worker = machine.worker()
    id = started(machine)
    worker.kill()
    worker.wait(30)
    machine.worker()
    machine.kill_daemon()
    machine.run("up")
    (machine.folder / "go").touch()
    until(lambda: machine.state(id) == "completed")
    assert machine.run("logs", id) == "begun\ndone\n"
    shown = machine.json("show", id)
    assert (shown["worker"], shown["place"]) == ("local", "pool:default")
    assert len(machine.json("inbox", "conv")["notices"]) == 1


@pytest.mark.slow
def test_no_secret_is_in_a_file_of_broker_owner_or_worker(machine: Machine):
    machine.worker()
    secret = "hunter2-of-this-test"
    id = machine.run(
        "run", "-q", "--place", "pool:default", "-e", f"SECRET={secret}", "--", "sleep", "60"
    ).strip()
    until(lambda: machine.state(id) == "running")
    found = [
        path for path in machine.folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert not found
    machine.run("cancel", id)


def test_a_worker_without_a_carrier_says_what_to_do(tmp_path: Path):
    machine = Machine(tmp_path)
    done = subprocess.run([*MEANTIME, "worker"], env=machine.env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "There is no carrier to work for." in done.stderr
    assert "[worker] carrier" in done.stderr
