"""The socket server of an open Meantime: a unix socket for processes of the same user."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path

from meantime.ports.owner import Catalog
from meantime.ports.tasks import Tasks
from meantime.surfaces.unix_socket import UnixSocket, bind_unix

from .client_link import ClientLink, LinkedOwner
from .executor_reports import ExecutorReports, KeepLate
from .executor_table import ExecutorTable

MAX_LINKS = 1_000  # connected processes
DRAIN = 1.0  # seconds that the last words of a closing door have


class LinkServer:
    """`keep_late` takes the report of a run that was given up; `unread` counts the notices of a thread."""

    def __init__(
        self,
        tasks: Tasks,
        catalog: Catalog,
        executors: ExecutorTable,
        path: Path,
        version: str,
        *,
        keep_late: KeepLate,
        unread: Callable[[str], int],
    ) -> None:
        self.executors = executors
        self._reports = ExecutorReports(tasks, keep_late)
        instance = secrets.token_hex(8)
        self._owner = LinkedOwner(tasks, catalog, executors, self._reports, unread, instance, version)
        self._path = path
        self._links: set[ClientLink] = set()
        self._server: asyncio.Server | None = None
        self._socket: UnixSocket | None = None

    async def open(self) -> None:
        self._socket = bind_unix(self._path)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._connected, sock=self._socket.listening)

    def _connected(self) -> asyncio.Protocol:
        full = f"{len(self._links)} processes are connected." if len(self._links) >= MAX_LINKS else ""
        link = ClientLink(self._owner, full)
        self._links.add(link)
        link.closed.add_done_callback(lambda _: self._links.discard(link))
        return link.wire

    def pause(self) -> None:
        """No question is answered any more: the next owner will. Endings are still received."""
        if self._server is None or self._socket is None:
            return
        self._server.close()
        self._server = None
        self._socket.remove()
        for link in list(self._links):
            link.pause()

    async def close(self) -> None:
        """Everybody is told that we mean it. Runs of executors go on, and the next owner is told of them."""
        self.pause()
        links = list(self._links)
        for link in links:
            link.close()
        if links:
            await asyncio.wait([link.closed for link in links], timeout=DRAIN)
        for link in list(self._links):
            link.wire.abort()
        self.executors.close()
        self._reports.close()
