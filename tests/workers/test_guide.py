"""docs/guides/workers.md, "On other machines": every block is used, with other addresses and passwords."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until, until_async

from carriers.postgres_server import postgres_server
from meantime.app.config_sources import load
from meantime.carriers.carrier_url import owner_carrier, worker_carrier
from meantime.carriers.nats.nats_address import read_address
from meantime.carriers.nats.nats_subjects import NatsSubjects
from meantime.carriers.nats.private_server import _program
from meantime.carriers.nats.server_probe import LEAST_PAYLOAD, look_at_server
from meantime.carriers.nats.tls_certificates import make_certificates
from meantime.daemon.home import Home

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "workers.md"
MEANTIME = [sys.executable, "-m", "meantime.app.main"]
pytestmark = [pytest.mark.xdist_group("workers"), pytest.mark.processes]


def blocks(language: str) -> list[str]:
    text = PAGE.read_text("utf-8")
    part = text[text.index("## On other machines") : text.index("## What a worker performs")]
    return re.findall(rf"^```{language}\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# -- configurations


@pytest.mark.parametrize("number", range(4))
def test_a_configuration_of_the_guide_can_be_loaded(number: int, tmp_path: Path):
    found = blocks("toml")
    assert len(found) == 4
    file = tmp_path / "config.toml"
    file.write_text(found[number])
    config = load(Home(tmp_path / "home", file), {}).values
    assert config.engine.carrier or config.worker.name


def test_the_unit_of_the_worker_is_whole_and_leaves_commands_alone(tmp_path: Path):
    (unit,) = blocks("ini")
    parsed = ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read_string(unit)
    service = dict(parsed["Service"])
    assert service["ExecStart"].endswith("/meantime worker")
    assert (service["Type"], service["KillMode"], service["Restart"]) == ("exec", "process", "on-failure")
    drain = tomllib.loads(blocks("toml")[1])["worker"]["drain"]
    assert int(service["TimeoutStopSec"]) > drain
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = tmp_path / ".local/bin/meantime"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    file = tmp_path / "meantime-worker.service"
    file.write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "--user", "--recursive-errors=no", "verify", str(file)],
        env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


# -- a NATS server of one's own


def _started(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [_program(), "-c", "nats-server.conf", "-sd", str(folder / "store")], cwd=folder,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.anyio
async def test_the_configuration_of_nats_carries_work_and_limits_the_worker(tmp_path: Path):
    (conf,) = blocks("conf")
    addresses = tomllib.loads(blocks("toml")[2])
    port = free_port()
    certificates = make_certificates(tmp_path, ["127.0.0.1"], datetime.now(UTC))
    (tmp_path / "nats-server.conf").write_text(conf.replace(":4222", f":{port}"))

    def of(url: str) -> str:
        return url.replace(":4222", f":{port}").replace("ca.pem", certificates.ca_file)

    server = _started(tmp_path)
    owner = owner_carrier(of(addresses["engine"]["carrier"]))
    given = addresses["worker"]
    worker = worker_carrier(of(given["carrier"]), given["name"])
    received: list[tuple[str, bytes]] = []
    try:
        await owner.open(lambda name, data: received.append((name, data)), lambda state: None)
        await until_async(lambda: owner.state.up, "the owner is connected")
        await worker.open(lambda data: None, lambda state: None)
        await until_async(lambda: worker.state.up, "the worker is connected")
        await owner.add_pool(given["pool"])
        owner.offer(given["pool"], "k1", b"an offer")
        (offered,) = await worker.pull(given["pool"], 1, LIMIT)
        worker.acknowledge(offered)
        worker.to_owner(b"hello")
        await until_async(lambda: received == [("gpu-1", b"hello")], "the message has come")
        look = await look_at_server(read_address(of(given["carrier"])), given["name"])
        assert (look.problem, look.allowed) == ("", ())
        assert look.max_payload >= LEAST_PAYLOAD
    finally:
        await worker.close()
        await owner.close()
        server.terminate()
        server.wait(LIMIT)


def test_the_permissions_of_the_guide_are_those_that_a_worker_needs():
    (conf,) = blocks("conf")
    allowed = NatsSubjects("meantime").permissions("gpu-1", ["gpu"])
    for way, subjects in allowed.items():
        (listed,) = re.findall(rf"{way}: \[(.*?)\]", conf, re.DOTALL)
        assert re.findall(r'"(.*?)"', listed) == subjects


# -- PostgreSQL


def test_postgresql_carries_work_as_the_guide_says(tmp_path: Path):
    (sql,) = blocks("sql")
    with postgres_server() as server:
        for statement in sql.strip().splitlines():
            server.sql(statement)
        url = tomllib.loads(blocks("toml")[3])["engine"]["carrier"].replace(":5432", f":{server.port}")
        owner = Machine(tmp_path / "owner", MEANTIME_ENGINE_CARRIER=url)
        owner.run("up")
        try:
            section = owner.run("workers", "add", "gpu-1", "--pool", "gpu")
            worker = Machine(tmp_path / "worker")
            worker.config.write_text(f"{section}\nshell = true\n")
            assert [one["name"] for one in owner.json("workers", "logins")["logins"]] == ["gpu-1"]
            with worker.working():
                assert owner.run("run", "-w", "--place", "pool:gpu", "--", "echo", "done") == "done\n"
            checks = worker.json("doctor")["checks"]
            assert [one for one in checks if one["name"] == "worker" and one["level"] == "bad"] == []
            owner.run("workers", "revoke", "gpu-1")
            assert owner.json("workers", "logins")["logins"] == []
            (down,) = [one for one in worker.run_any("doctor", "--json")["checks"] if "down" in one["found"]]
            assert "correct [worker] carrier" in down["todo"]
        finally:
            owner.run("down", "--stop")


# -- two machines


class Machine:
    def __init__(self, folder: Path, **env: str) -> None:
        folder.mkdir(parents=True)
        self.folder, self.config = folder, folder / "config.toml"
        self.env = os.environ | {
            "MEANTIME_HOME": str(folder / "home"),
            "MEANTIME_CONFIG": str(self.config),
            "MEANTIME_HTTP_PORT": "0",
            **env,
        }

    def call(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*MEANTIME, *words], env=self.env, capture_output=True, text=True, timeout=LIMIT, input=given
        )

    def run(self, *words: str, given: str = "") -> str:
        done = self.call(*words, given=given)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_any(self, *words: str) -> dict[str, list[dict[str, str]]]:
        return json.loads(self.call(*words).stdout)

    def json(self, *words: str) -> dict[str, list[dict[str, str]]]:
        return json.loads(self.run(*words, "--json"))

    def working(self, *words: str) -> Working:
        return Working(self, words)


class Working:
    """A worker that runs until the block ends."""

    def __init__(self, machine: Machine, words: tuple[str, ...]) -> None:
        self.machine, self.words = machine, words

    def __enter__(self) -> None:
        self.log = (self.machine.folder / "worker.log").open("wb")
        self.child = subprocess.Popen(
            [*MEANTIME, "worker", *self.words], env=self.machine.env, stdout=self.log, stderr=self.log
        )

    def __exit__(self, *problem: object) -> None:
        self.child.terminate()
        self.child.wait(LIMIT)
        self.log.close()


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Machine]:
    owner = Machine(tmp_path / "owner")
    try:
        yield owner
    finally:
        owner.call("down", "--stop")


def test_the_words_of_the_guide_are_verbs_that_there_are():
    said = {line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()}
    assert said == {
        "meantime down", "meantime up --carrier local --listen 192.168.1.5:4222",
        "pip install '.[server,workers]'", "meantime worker --join -",
        "meantime workers join-line --pool gpu", "meantime workers logins", "meantime workers revoke gpu-1",
    }  # fmt: skip


def test_from_one_machine_to_two(owner: Machine, tmp_path: Path):
    """As the guide has it, with two homes and two addresses of loopback."""
    port = free_port()
    up = ("up", "--carrier", "local", "--listen", f"127.0.0.2:{port}")
    said = owner.run(*up)
    line = next(word for word in said.splitlines() if word.startswith("mtjoin1-"))
    second = Machine(tmp_path / "second")
    second.config.write_text("[worker]\nname = 'w2'\nshell = true\n")
    second.run("worker", "--join", "-", "--no-run", given=f"{line}\n")
    again = second.call("worker", "--join", "-", "--no-run", "--name", "w3", given=line)
    assert again.returncode == 1
    assert "was used already, for worker 'w2'" in again.stderr
    with second.working():
        assert owner.run("run", "-w", "--place", "pool:default", "--", "echo", "there") == "there\n"
        owner.run("down")
        owner.run(*up)
        assert owner.run("run", "-w", "--place", "pool:default", "--", "echo", "again") == "again\n"
        (one,) = owner.json("workers")["workers"]
        assert (one["name"], abs(float(one["skew"])) < LIMIT) == ("w2", True)
        for machine in (owner, second):
            bad = [row for row in machine.run_any("doctor", "--json")["checks"] if row["level"] == "bad"]
            assert bad == []
        assert "revoked w2" in owner.run("workers", "revoke", "w2")
        log = second.folder / "worker.log"
        until(
            lambda: b"refuses the login worker-w2" in log.read_bytes(), "the worker is refused", log.read_text
        )
    (row,) = [row for row in second.run_any("doctor", "--json")["checks"] if row["level"] == "bad"]
    assert "refuses the login" in row["found"]
    assert "meantime workers join-line" in row["todo"]
