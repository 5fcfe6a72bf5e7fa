"""OpenCode servers: `Remote`, which somebody else runs, and `Server`, our own: started when it is needed, and
found again by whoever comes after us.

Our own has a session of its own, so it outlives us, and the turns in it go on. The facts that are needed to
find it are in our folder. Nothing is asked of it before it says where it listens: such a question is never
answered."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from meantime.integrations.agent_host.marked_processes import end_marked, signal_group
from meantime.system.atomic_file import replace_file
from meantime.system.origin import ELSEWHERE, Origin
from meantime.system.platform import writes_into
from meantime.system.process import Process, process

from .errors import Away, Denied, NotStarted

if TYPE_CHECKING:
    from .wire.api_client import ApiClient
    from .wire.server_events import ServerEvents

ARGUMENTS = ("serve", "--port", "0", "--hostname", "127.0.0.1")
LISTENING = re.compile(r"listening on (http://\S+)\s")
START_TIMEOUT = 60.0  # seconds
PAUSE = 0.02
GRACE = 5.0  # seconds between asking it to end and ending it
MARK = "MEANTIME_OPENCODE"  # in the environment of the server, and of all that it starts


class AccountRecord(Struct, frozen=True):
    """The stored facts about a server; its owner alone can read them."""

    process: Process
    password: str
    mark: str
    folder: Origin = ELSEWHERE  # in which this was written; an older record does not say it


class OpenCodeServer:
    def __init__(self, folder: Path, command: Sequence[str], environ: Mapping[str, str], cwd: str) -> None:
        self._folder = folder
        self._command = (*command, *ARGUMENTS)
        self._environ = environ
        self._cwd = cwd
        self._record: AccountRecord | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._client: ApiClient | None = None
        self._feed: ServerEvents | None = None
        self._lock = asyncio.Lock()
        self.starts = 0

    @property
    def record(self) -> AccountRecord | None:
        return self._record

    @property
    def is_alive(self) -> bool:
        if self._child is not None:
            self._child.poll()  # else it stays as a zombie
        return self._record is not None and self._record.process.is_alive

    async def reach(self) -> tuple[ApiClient, ServerEvents]:
        """One that answers: the same as before, the one that a former owner has left, or a new one."""
        async with self._lock:
            if self._client is not None and self._feed is not None and self.is_alive:
                return self._client, self._feed
            await self._drop()
            url = await self._found()
            if url is None:
                url = await self._started()
            from .wire.api_client import ApiClient
            from .wire.server_events import ServerEvents

            assert self._record is not None
            self._client = ApiClient(url, self._record.password)
            self._feed = ServerEvents(self._client)
            return self._client, self._feed

    async def close(self, *, keep: bool) -> None:
        """Lets go of it. It is ended with all that it runs, unless it is kept for the next owner."""
        async with self._lock:
            await self._drop()
            if not keep:
                await end_left(self._folder)
            self._record = None

    async def _drop(self) -> None:
        if self._client is not None:
            await self._client.close()
        self._client = self._feed = None

    async def _found(self) -> str | None:
        record = remembered(self._folder)
        if record is None:
            return None
        if record.process.is_alive:
            url = self._address()
            if url is not None and await _answers(url, record.password):
                self._record = record
                return url
        await end(record)  # of no use, or dead: but not what it has left running
        return None

    async def _started(self) -> str:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        password, mark = secrets.token_urlsafe(24), secrets.token_hex(8)
        environ = {**self._environ, "OPENCODE_SERVER_PASSWORD": password, MARK: mark}
        with (
            _private(self._path("server.out")) as out,
            _private(self._path("server.err")) as errors,
        ):
            try:
                self._child = subprocess.Popen(  # noqa: ASYNC220  which takes a moment only
                    self._command, env=environ, cwd=self._cwd, stdin=subprocess.DEVNULL, stdout=out,
                    stderr=errors, start_new_session=True,
                )  # fmt: skip
            except OSError as problem:
                raise NotStarted(
                    f"OpenCode could not be started: {problem}.",
                    hint="Install it, or name its program in the agent's `command`.",
                ) from None
        self._record = AccountRecord(process(self._child.pid), password, mark, Origin.of(self._folder))
        self._remember(self._record)  # before it listens: a next owner must know of it
        self.starts += 1
        return await self._said(self._child)

    async def _said(self, child: subprocess.Popen[bytes]) -> str:
        until = asyncio.get_running_loop().time() + START_TIMEOUT
        while (url := self._address()) is None:
            late = asyncio.get_running_loop().time() > until
            if late or child.poll() is not None:
                record, self._record = self._record, None
                if record is not None:
                    await end(record)
                why = "It said nothing in time." if late else f"It ended with {child.returncode}."
                raise NotStarted(
                    f"OpenCode could not be started. {why} {self._complaint()}".strip(),
                    hint=f"Look into {self._path('server.err')}.",
                )
            await asyncio.sleep(PAUSE)
        return url

    def _address(self) -> str | None:
        try:
            found = LISTENING.search(self._path("server.out").read_text(errors="replace"))
        except OSError:
            return None
        return found[1] if found else None

    def _complaint(self) -> str:
        with contextlib.suppress(OSError):
            return self._path("server.err").read_text(errors="replace").strip()[-500:]
        return ""

    def _remember(self, record: AccountRecord) -> None:
        replace_file(self._path("server.json"), msgspec.json.encode(record), draft="server.json.new")

    def _path(self, name: str) -> Path:
        return self._folder / name


def remembered(folder: Path) -> AccountRecord | None:
    """None also in a copy of the folder: that server, with its turns, is the original's."""
    try:
        record = msgspec.json.decode((folder / "server.json").read_bytes(), type=AccountRecord)
    except (OSError, msgspec.MsgspecError):
        return None
    if record.folder == ELSEWHERE:
        return record if _writes_into(record.process, folder / "server.out") else None
    return record if record.folder.holds_processes(folder) else None


def _writes_into(process: Process, out: Path) -> bool:
    """For older records: our server has the file open to which it says where it listens."""
    return process.is_alive and writes_into(process.pid, out)


async def end_left(folder: Path) -> None:
    """Ends the server that is remembered here, with all that it runs."""
    record = remembered(folder)
    if record is not None:
        await end(record)
        (folder / "server.json").unlink(missing_ok=True)


async def end(record: AccountRecord) -> None:
    """Asks, waits, forces it; and ends what it has left."""
    signal_group(record.process, signal.SIGTERM)
    until = asyncio.get_running_loop().time() + GRACE
    while record.process.is_alive:
        if asyncio.get_running_loop().time() > until:
            signal_group(record.process, signal.SIGKILL)
        await asyncio.sleep(PAUSE)
    end_marked(MARK, record.mark)


async def _answers(url: str, password: str) -> bool:
    from .wire.api_client import ApiClient

    client = ApiClient(url, password)
    try:
        return bool((await client.health()).get("healthy"))
    except (Away, Denied):
        return False
    finally:
        await client.close()


def _private(path: Path):
    """A new file that only we can read."""
    path.unlink(missing_ok=True)
    return open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o600), "wb")


class RemoteServer:
    """A server that somebody else runs. While it is away, it is waited for."""

    def __init__(self, url: str, password: str) -> None:
        self._url = url
        self._password = password
        self._wire: tuple[ApiClient, ServerEvents] | None = None

    async def reach(self) -> tuple[ApiClient, ServerEvents]:
        if self._wire is None:
            from .wire.api_client import ApiClient
            from .wire.server_events import ServerEvents

            client = ApiClient(self._url, self._password)
            self._wire = client, ServerEvents(client)
        await self._wire[0].wait()
        return self._wire

    async def close(self, *, keep: bool) -> None:
        if self._wire is not None:
            await self._wire[0].close()
