"""The files of a private NATS server: its address, its logins and its configuration.

The owner of the ledger and the command line both change them, each under a lock, and have the server read its
configuration again. So logins come and go while the server runs, and whoever runs it next finds them.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.kernel.errors import Disconnected, InvalidInput, NotFound
from meantime.ports.carrier import check_name
from meantime.system.atomic_file import PRIVATE, replace_file
from meantime.system.process import Process

from .nats_address import LOOPBACK, TLS_NAME, NatsAddress
from .server_config import JoinCredential, ServerLogin, ServerTls, server_config

MOST_WORKERS = 1000
MOST_LINES = 100  # join lines that are open
LOCK_WAIT = 10.0  # seconds
WILDCARDS = {"0.0.0.0": LOOPBACK, "::": "::1"}  # listen on every address: we connect to loopback


class PrivateServerRecord(Struct):
    """Contents of `server.json`."""

    port: int
    owner: ServerLogin
    workers: dict[str, ServerLogin]
    name: str = ""  # of the server: new at each start, and nobody else's
    process: Process | None = None
    is_ready: bool = True  # it listens, and a SIGHUP does not end it any more
    host: str = LOOPBACK
    space: str = "meantime"
    tls: ServerTls | None = None
    ca_file: str = ""
    fingerprint: str = ""  # of the authority, in hex
    owner_key: str = ""  # which join lines name
    lines: dict[str, JoinCredential] = {}  # join lines that were printed, by id

    def address(self, user: str, login: ServerLogin) -> NatsAddress:
        """For clients on this machine."""
        host = WILDCARDS.get(self.host, self.host)
        name = TLS_NAME if self.tls is not None else ""
        server = f"{bracketed(host)}:{self.port}"
        return NatsAddress(
            (server,), user, login.password, self.space, self.tls is not None, self.ca_file, tls_name=name
        )

    def worker_address(self, worker: str) -> NatsAddress:
        """With the worker's own account. Raises NotFound for a worker that has none."""
        login = self.workers.get(worker)
        if login is None:
            raise NotFound(
                f"No worker {worker!r} has a login.", hint="`meantime workers logins` lists those that do."
            )
        return self.address(f"worker-{worker}", login)

    def add_worker(
        self, worker: str, pools: tuple[str, ...], password: str = "", *, is_own: bool = False
    ) -> None:
        """Makes a login for a worker, or changes its pools; a new one has the password that is given."""
        check_name("worker", worker)
        if worker not in self.workers and len(self.workers) >= MOST_WORKERS:
            raise InvalidInput(
                f"There are {MOST_WORKERS} workers already.", hint="Remove some: meantime workers revoke NAME"
            )
        names = tuple(check_name("pool", pool) for pool in pools)
        known = self.workers.get(worker)
        kept = known.password if known is not None else new_login().password
        self.workers[worker] = ServerLogin(password or kept, names, is_own)

    def add_line(self, id: str, line: JoinCredential) -> None:
        if len(self.lines) >= MOST_LINES:
            raise InvalidInput(
                f"{MOST_LINES} join lines are open already.",
                hint="Use them, or wait until the first of them expires.",
            )
        self.lines[id] = line

    def expire(self, now: float) -> bool:
        """Removes join lines whose time is over. Returns whether there were any."""
        over = [id for id, line in self.lines.items() if 0 < line.expires <= now]
        for id in over:
            del self.lines[id]
        return bool(over)


class AccountFiles:
    """The folder of one private server; made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def path(self) -> Path:
        return self.folder / "server.json"

    def read(self) -> PrivateServerRecord | None:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=PrivateServerRecord)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as problem:
            raise InvalidInput(
                f"{self.path} cannot be read: {problem}.",
                hint="Delete the folder: workers then need new logins.",
            ) from None

    @contextmanager
    def change(self, absent: PrivateServerRecord | None = None) -> Generator[PrivateServerRecord]:
        """The record, to be changed; an exception leaves the files as they were. A server that runs reads its
        configuration again if there was a change: whoever logs in at that moment is cut off.

        absent: the record where there is none; without it that is NotFound.
        """
        if absent is not None:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        with self._locked():
            known = self.read()
            record = known or absent
            if record is None:
                raise _no_server(self.folder)
            before = b"" if known is None else msgspec.json.encode(known)
            record.expire(time.time())
            yield record
            if msgspec.json.encode(record) == before:
                return
            self._write(record)
            if record.process is not None and record.is_ready and record.process.is_alive:
                os.kill(record.process.pid, signal.SIGHUP)

    @contextmanager
    def _locked(self) -> Generator[None]:
        try:
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        except FileNotFoundError:
            raise _no_server(self.folder) from None
        try:
            over = time.monotonic() + LOCK_WAIT
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > over:
                        raise Disconnected(f"Another process holds {self.folder / 'lock'}.") from None
                time.sleep(0.005)
            yield
        finally:
            os.close(lock)

    def _write(self, record: PrivateServerRecord) -> None:
        if not record.port:
            record.port = free_port(record.host)
        config = server_config(
            host=bracketed(record.host),
            port=record.port,
            folder=str(self.folder),
            name=record.name,
            space=record.space,
            owner=record.owner,
            workers=record.workers,
            lines=record.lines,
            tls=record.tls,
        )
        replace_file(self.folder / "nats.conf", config)
        replace_file(self.path, msgspec.json.encode(record))


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def new_login() -> ServerLogin:
    return ServerLogin(secrets.token_urlsafe(32))


def free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((host, 0))
            return probe.getsockname()[1]
    except OSError as problem:
        raise InvalidInput(
            f"Nothing can listen on {host}: {problem.strerror or problem}.",
            hint="Use an address of this machine: `ip address` lists them; 0.0.0.0 is all of them.",
        ) from None


def _no_server(folder: Path) -> NotFound:
    return NotFound(
        f"No private NATS server keeps its files in {folder}.", hint="Start it: meantime up --carrier local"
    )
