"""The socket door of an open Meantime: a unix socket for processes of the same user."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import stat
from pathlib import Path

from meantime.kernel.errors import InvalidInput
from meantime.ports.tasks import Tasks

from .executors import ExecutorTable
from .link import Link

MAX_LINKS = 1_000  # connected processes
DRAIN = 1.0  # seconds that the last words of a closing door have


class SocketDoor:
    def __init__(self, tasks: Tasks, executors: ExecutorTable, path: Path, version: str) -> None:
        self._tasks = tasks
        self.executors = executors
        self._path = path
        self._version = version
        self._instance = secrets.token_hex(8)
        self._links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self._file: tuple[int, int] | None = None

    async def open(self) -> None:
        self.executors.serve(self._tasks)
        listening = bind(self._path)
        self._server = await asyncio.get_running_loop().create_unix_server(self._connected, sock=listening)
        self._file = _identity(self._path)

    def _connected(self) -> asyncio.Protocol:
        link = Link(self._tasks, self.executors, self._instance, self._version)
        if len(self._links) >= MAX_LINKS:
            asyncio.get_running_loop().call_soon(link.wire.abort)
            return link.wire
        self._links.add(link)
        link.closed.add_done_callback(lambda _: self._links.discard(link))
        return link.wire

    async def close(self) -> None:
        """Everybody is told that we mean it. Runs of executors go on, and the next owner hears of them."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        if self._file == _identity(self._path):
            self._path.unlink(missing_ok=True)
        links = list(self._links)
        for link in links:
            link.close()
        if links:
            await asyncio.wait([link.closed for link in links], timeout=DRAIN)
        for link in list(self._links):
            link.wire.abort()
        self.executors.close()


def bind(path: Path) -> socket.socket:
    """A listening socket that is private from its first moment on: before it is, it does not listen."""
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent} for the socket.", hint="Make it first.")
    new = path.parent / f".{secrets.token_hex(4)}"
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _bind(made, new)
        os.chmod(new, stat.S_IRUSR | stat.S_IWUSR)
        made.listen(128)
        made.setblocking(False)
        os.replace(new, path)
    except OSError as problem:
        made.close()
        new.unlink(missing_ok=True)
        raise InvalidInput(
            f"The socket {path} cannot be made: {problem.strerror}.", hint="Name another place for it."
        ) from problem
    return made


def _bind(made: socket.socket, path: Path) -> None:
    """A socket's name has at most 107 bytes. Through its opened folder, any path is short enough."""
    folder = os.open(path.parent, os.O_DIRECTORY | os.O_RDONLY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{folder}"
        place = f"{short}/{path.name}" if os.path.isdir(short) else os.fspath(path)
        made.bind(place)
    finally:
        os.close(folder)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
