"""A daemon, its private NATS server and a worker, each a process of its own, killed with -9."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

pytestmark = [pytest.mark.xdist_group("workers"), pytest.mark.processes]
MEANTIME = [sys.executable, "-m", "meantime.app.main"]


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # cuts rows
        self.env = inherited | {
            "MEANTIME_HOME": str(folder / "home"),
            "MEANTIME_CONFIG": str(folder / "config.toml"),
            "MEANTIME_HTTP_PORT": "0",
            "MEANTIME_ENGINE_CARRIER": "local",
            "MEANTIME_NOTICES_SECONDS": "0.01",
        }
        self.workers: list[subprocess.Popen[Any]] = []

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*MEANTIME, *words], env=self.env, capture_output=True, text=True, timeout=LIMIT
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json"))

    def worker(self) -> subprocess.Popen[bytes]:
        log = (self.folder / "worker.log").open("ab")
        worker = subprocess.Popen([*MEANTIME, "worker"], env=self.env, stdout=log, stderr=log)
        self.workers.append(worker)
        until(
            lambda: any(one["silent"] < 1 for one in self.json("workers")["workers"]), "the worker is there"
        )
        return worker

    def kill_daemon(self) -> None:
        os.kill(self.json("status")["info"]["pid"], signal.SIGKILL)
        until(
            lambda: subprocess.run([*MEANTIME, "status"], env=self.env, capture_output=True).returncode,
            "the daemon is gone",
        )

    def state(self, id: str) -> str:
        return self.json("show", id)["state"]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    machine.run("up")
    try:
        yield machine
    finally:
        for worker in machine.workers:
            worker.terminate()
            worker.wait(LIMIT)
        machine.run("down", "--stop")


def started(machine: Machine) -> str:
    line = f"echo begun; while [ ! -e {machine.folder}/go ]; do sleep 0.05; done; echo done"
    id = machine.run("run", "-q", "--place", "pool:default", "--thread", "conv", "-c", line).strip()
    until(lambda: machine.state(id) == "running", "the task runs")
    until(lambda: "begun" in machine.run("logs", id), "the command has begun")
    return id


@pytest.mark.core("the one worker that is killed")
def test_a_command_outlives_its_worker_and_its_owner(machine: Machine):
    """Both are killed with -9, one after the other; the command runs once, and its thread is told once."""
    worker = machine.worker()
    id = started(machine)
    worker.kill()
    worker.wait(LIMIT)
    machine.worker()
    machine.kill_daemon()
    machine.run("up")
    (machine.folder / "go").touch()
    until(lambda: machine.state(id) == "completed", "the task has completed")
    assert machine.run("logs", id) == "begun\ndone\n"
    shown = machine.json("show", id)
    assert (shown["worker"], shown["place"]) == ("local", "pool:default")
    assert len(machine.json("inbox", "conv")["notices"]) == 1


def test_what_a_command_tells_is_told_once_while_worker_and_owner_are_killed(machine: Machine):
    worker = machine.worker()
    texts = [f"step {number}" for number in range(4)]
    notify = f"{shlex.quote(sys.executable)} -m meantime notify"
    steps = [f"{notify} {shlex.quote(text)}; echo {text}; sleep 0.3" for text in texts]
    line = "; ".join([*steps, f"while [ ! -e {machine.folder}/go ]; do sleep 0.05; done"])
    id = machine.run("run", "-q", "--place", "pool:default", "--thread", "conv", "-c", line).strip()
    until(lambda: "step 0" in machine.run("logs", id), "the first step is made")
    worker.kill()
    worker.wait(LIMIT)
    machine.worker()
    until(lambda: "step 1" in machine.run("logs", id), "the second step is made")
    machine.kill_daemon()
    machine.run("up")
    until(lambda: "step 3" in machine.run("logs", id), "the last step is made")
    (machine.folder / "go").touch()
    until(lambda: machine.state(id) == "completed", "the task has completed")
    *events, ending = machine.json("inbox", "conv")["notices"]
    assert [(event["kind"], event["text"]) for event in events] == [("event", text) for text in texts]
    assert ending["kind"] == "ending"


def test_a_worker_that_has_just_joined_says_what_it_may_not_perform_yet(tmp_path: Path):
    machine = Machine(tmp_path)
    machine.run("up", "--carrier", "local", "--listen", "127.0.0.1")
    try:
        line = machine.run("workers", "join-line")
        env = machine.env | {"MEANTIME_HOME": str(tmp_path / "other"), "MEANTIME_ENGINE_CARRIER": ""}
        words = [*MEANTIME, "worker", "--join", "-", "--name", "other"]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, env=env, stdin=pipe, stderr=pipe, text=True) as worker:
            try:
                assert worker.stdin is not None
                assert worker.stderr is not None
                worker.stdin.write(line)
                worker.stdin.close()
                heard = iter(worker.stderr.readline, "")
                assert next(said for said in heard if "can perform nothing" in said)
                id = machine.run("run", "-q", "--place", "pool:default", "true").strip()
                until(
                    lambda: "performs commands (other cannot)" in machine.run("ps"),
                    "the list says why it waits",
                    there=lambda: machine.run("ps"),
                )
                machine.run("cancel", id)
            finally:
                worker.terminate()
    finally:
        machine.run("down", "--stop")


def test_no_secret_is_in_a_file_of_broker_owner_or_worker(machine: Machine):
    machine.worker()
    secret = "hunter2-of-this-test"
    id = machine.run(
        "run", "-q", "--place", "pool:default", "-e", f"SECRET={secret}", "--", "sleep", "600"
    ).strip()
    until(lambda: machine.state(id) == "running", "the task runs")
    found = [
        path for path in machine.folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert not found
    assert not [path for path in (machine.folder / "home").iterdir() if path.lstat().st_mode & 0o077]
    machine.run("cancel", id)


def test_a_worker_without_a_carrier_says_what_to_do(tmp_path: Path):
    machine = Machine(tmp_path)
    done = subprocess.run(
        [*MEANTIME, "worker"], env=machine.env, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 1
    assert "There is no carrier to work for." in done.stderr
    assert "[worker] carrier" in done.stderr
