"""A PostgreSQL server of the tests' own: a new cluster in a temporary folder, on a loopback port.

PostgreSQL refuses to run as root: the server then runs as Debian's user `postgres`, or as `nobody`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "autovacuum": "off",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "log_min_messages": "fatal",
}


def programs() -> Path | None:
    """The folder with initdb and postgres: Debian keeps them out of PATH."""
    for name in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (name / "initdb").exists():
            return name
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def require_postgres() -> Path:
    found = programs()
    if found is None:
        message = "PostgreSQL is not installed: make postgres"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return found


def other_user() -> str | None:
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in users), None)


class PostgresServer:
    def __init__(self, folder: Path, bin: Path) -> None:
        self._bin, self._user = bin, other_user()
        self._data, self._log = folder / "data", folder / "log"
        self._child: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        if self._user is not None:
            shutil.chown(folder, self._user)
        self._run("initdb", "-D", self._data, "-U", "owner", "--auth=trust", "-N", "-E", "UTF8", "--locale=C")

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def url(self, database: str = "postgres") -> str:
        return f"postgres://owner@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        options = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, "-p", str(self.port), *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=self._user, cwd="/",
                start_new_session=True,
            )  # fmt: skip
        until(lambda: self._is_ready() or self._child.poll() is not None, "PostgreSQL has started")
        assert self._child.poll() is None, self._log.read_text()[-2000:]

    def kill(self) -> None:
        """As kill -9 does, for the server and the processes of its connections."""
        if self._child is not None and self._child.poll() is None:
            for pid in [self._child.pid, *self.children()]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._child.wait(LIMIT)

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def stop(self) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)
            try:
                self._child.wait(LIMIT)
            except subprocess.TimeoutExpired:
                self.kill()

    def sql(self, text: str, database: str = "postgres") -> str:
        command = [self._bin / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text, self.url(database)]
        return subprocess.run(command, capture_output=True, check=True, timeout=LIMIT, text=True).stdout

    def _is_ready(self) -> bool:
        command = [self._bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, timeout=LIMIT).returncode == 0

    def _run(self, program: str, *args: object) -> None:
        command = [self._bin / program, *map(str, args)]
        done = subprocess.run(
            command, capture_output=True, timeout=LIMIT, user=self._user, cwd="/", text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]


@contextmanager
def postgres_server() -> Generator[PostgresServer]:
    bin = require_postgres()
    folder = Path(tempfile.mkdtemp(prefix="meantime-postgres-"))  # pytest's own are closed to other users
    server: PostgresServer | None = None
    try:
        server = PostgresServer(folder, bin)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
