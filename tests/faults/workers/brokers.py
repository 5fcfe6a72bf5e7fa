"""The broker in between, as a process that can be killed, and whose files can be deleted."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from abc import ABC, abstractmethod
from pathlib import Path

import msgspec
from tests.carriers.postgres_server import PostgresServer, programs
from tests.waiting import LIMIT, until

from meantime.carriers.nats.nats_address import NatsAddress
from meantime.carriers.nats.server_config import ServerLogin, server_config

from .. import strace

LOOPBACK = "127.0.0.1"
PASSWORD = "of-the-tests"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def is_listening(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), LIMIT).close()
    except OSError:
        return False
    return True


class Broker(ABC):
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports: list[int] = [free_port()]

    @abstractmethod
    def start(self) -> None:
        """Returns when it listens."""

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def wipe(self) -> None:
        """Deletes all its files, while it is dead."""

    @abstractmethod
    def owner_url(self) -> str: ...

    @abstractmethod
    def worker_url(self, name: str, host: str, ports: list[int]) -> str:
        """Through a relay for each of the broker's ports."""

    def end(self) -> None:
        self.kill()


class MemoryProcess(Broker):
    """With messages that are lost, doubled, reordered and up to `delay` seconds late. It has no files."""

    def __init__(self, folder: Path, seed: int, delay: float) -> None:
        super().__init__(folder)
        self._words = [str(self.folder), str(self.ports[0]), str(seed), str(delay)]
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = [sys.executable, "-m", "tests.faults.workers.memory_carrier", *self._words]
        with (self.folder / "broker.log").open("ab") as log:
            self._child = subprocess.Popen(program, cwd=strace.ROOT, stdout=log, stderr=log)
        until(lambda: is_listening(self.ports[0]), "the broker listens")

    def kill(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._child = None

    def wipe(self) -> None:
        """Nothing of it survives a kill anyway."""

    def owner_url(self) -> str:
        return f"memory://{LOOPBACK}:{self.ports[0]}"

    def worker_url(self, name: str, host: str, ports: list[int]) -> str:
        return f"memory://{host}:{ports[0]}"


class NatsProcesses(Broker):
    """One nats-server, or a cluster of three."""

    def __init__(self, folder: Path, servers: int = 1, workers: tuple[str, ...] = ()) -> None:
        super().__init__(folder)
        self.ports = [free_port() for _ in range(servers)]
        self._routes = [free_port() for _ in range(servers)]
        self._monitors = [free_port() for _ in range(servers)]
        self._children: list[subprocess.Popen[bytes] | None] = [None] * servers
        self._workers = {name: ServerLogin(PASSWORD, ("default",)) for name in workers}

    def start(self) -> None:
        for number in range(len(self.ports)):
            self.start_one(number)

    def start_one(self, number: int) -> None:
        home = self.folder / f"nats-{number}"
        home.mkdir(exist_ok=True)
        config = msgspec.json.decode(
            server_config(
                host=LOOPBACK, port=self.ports[number], folder=str(home), name=f"s{number}",
                space="meantime", owner=ServerLogin(PASSWORD), workers=self._workers, lines={}, tls=None,
            )
        )  # fmt: skip
        config["http"] = f"{LOOPBACK}:{self._monitors[number]}"
        if len(self.ports) > 1:
            routes = [f"nats-route://{LOOPBACK}:{port}" for port in self._routes]
            config["cluster"] = {
                "name": "tests", "listen": f"{LOOPBACK}:{self._routes[number]}", "routes": routes,
            }  # fmt: skip
        (home / "nats.conf").write_bytes(msgspec.json.encode(config))
        program = Path(sysconfig.get_path("scripts")) / "nats-server"
        with (home / "start.log").open("ab") as log:
            self._children[number] = subprocess.Popen(
                [program, "-c", str(home / "nats.conf")], stdout=log, stderr=log, cwd=home
            )
        until(lambda: is_listening(self.ports[number]), "NATS listens")

    def kill(self) -> None:
        for number in range(len(self.ports)):
            self.kill_one(number)

    def kill_one(self, number: int) -> None:
        child = self._children[number]
        if child is not None:
            child.kill()
            child.wait()
            self._children[number] = None

    def leader(self) -> int:
        """The number of the server that leads the stream of the offers."""
        import http.client
        import json

        for number, port in enumerate(self._monitors):
            if self._children[number] is None:
                continue
            try:
                asked = http.client.HTTPConnection(LOOPBACK, port, timeout=LIMIT)
                asked.request("GET", "/jsz?streams=1&accounts=1")
                found = json.loads(asked.getresponse().read())
            except (OSError, ValueError, http.client.HTTPException):
                continue
            for account in found.get("account_details") or ():
                for stream in account.get("stream_detail") or ():
                    name = (stream.get("cluster") or {}).get("leader", "")
                    if name:
                        return int(name[1:])
        return -1

    def wipe(self) -> None:
        for number in range(len(self.ports)):
            shutil.rmtree(self.folder / f"nats-{number}")

    def owner_url(self) -> str:
        servers = tuple(f"{LOOPBACK}:{port}" for port in self.ports)
        return NatsAddress(servers, "owner", PASSWORD, replicas=len(self.ports)).url()

    def worker_url(self, name: str, host: str, ports: list[int]) -> str:
        servers = tuple(f"{host}:{port}" for port in ports)
        return NatsAddress(servers, f"worker-{name}", PASSWORD, replicas=len(self.ports), is_clear=True).url()


class PostgresProcess(Broker):
    """Workers have the owner's login: those of their own would be deleted with the server's files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        bin = programs()
        assert bin is not None
        self._server = PostgresServer(folder, bin)
        self.ports = [self._server.port]
        self._new = folder / "new"  # as initdb made it
        _copy(folder / "data", self._new)

    def start(self) -> None:
        until(self._is_started, "PostgreSQL has started")

    def _is_started(self) -> bool:
        try:
            self._server.start()
        except AssertionError:
            return False  # after a kill its shared memory may be in use for a moment
        return True

    def kill(self) -> None:
        self._server.kill()

    def wipe(self) -> None:
        shutil.rmtree(self.folder / "data")
        _copy(self._new, self.folder / "data")

    def end(self) -> None:
        self._server.stop()

    def owner_url(self) -> str:
        return self._server.url()

    def worker_url(self, name: str, host: str, ports: list[int]) -> str:
        return self._server.url().replace(f"{LOOPBACK}:{self.ports[0]}", f"{host}:{ports[0]}")


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)  # with its owner


def postgres_missing() -> str:
    return "" if programs() is not None else "PostgreSQL is not installed: make postgres"


def nats_missing() -> str:
    program = Path(sysconfig.get_path("scripts")) / "nats-server"
    return "" if os.access(program, os.X_OK) else "nats-server is not installed"
