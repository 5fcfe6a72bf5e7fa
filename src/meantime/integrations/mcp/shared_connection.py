"""The way to one server: a connection that is opened when it is needed, shared, and closed when idle.

A server that ends, or does not start, is started again for the next call: at first soon, then after
longer and longer waits."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from meantime.ports.event_loop import BackgroundTasks

from .errors import NotStarted
from .servers import Server

if TYPE_CHECKING:
    from .wire.server_connection import ServerConnection

FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # seconds between an end and the next start


class SharedConnection:
    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self._server = server
        self._connection: ServerConnection | None = None
        self._opening: asyncio.Task[ServerConnection] | None = None
        self._users = 0
        self._idle: asyncio.TimerHandle | None = None
        self._closing = BackgroundTasks()
        self._failures = 0  # ends and false starts since the last answer
        self._rests_until = 0.0
        self.starts = 0

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[ServerConnection]:
        """Raises NotStarted. Held while it is used, so that it is not closed for being idle."""
        self._users += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        connection: ServerConnection | None = None
        try:
            connection = await self._reach()
            connection.users += 1
            yield connection
        finally:
            self._users -= 1
            if connection is not None:
                connection.users -= 1
                if connection.users == 0 and connection is not self._connection:
                    self._finish(connection)
            if self._users == 0:
                loop = asyncio.get_running_loop()
                self._idle = loop.call_later(self._server.idle, self._drop)

    def answered(self) -> None:
        """It works: the next start, if one is needed, need not wait."""
        self._failures = 0

    def renounce(self, connection: ServerConnection) -> None:
        """It is of no use to new callers, who get another; those who use it may still be answered."""
        if self._connection is connection:
            self._connection = None

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        self._drop()
        await self._closing.wait()

    async def _reach(self) -> ServerConnection:
        connection = self._connection
        if connection is not None and connection.is_open:
            return connection
        if connection is not None:
            self._connection = None
            self._rest()
            self._finish(connection)
        if self._opening is None or self._opening.done():
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was heard
        try:
            return await asyncio.shield(self._opening)
        except asyncio.CancelledError:
            if self._opening.cancelled():
                raise NotStarted("Meantime was closed.") from None
            raise

    async def _open(self) -> ServerConnection:
        """One attempt, for all who wait for it."""
        wait = self._rests_until - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)
        # The SDK takes a while to load: the event loop goes on meanwhile.
        module = await asyncio.to_thread(
            importlib.import_module, "meantime.integrations.mcp.wire.server_connection"
        )
        connection: ServerConnection = module.ServerConnection(self.name, self._server)
        self.starts += 1
        try:
            await connection.open()
        except NotStarted:
            self._rest()
            raise
        except asyncio.CancelledError:
            await connection.close()
            raise
        self._connection = connection
        return connection

    def _rest(self) -> None:
        self._failures += 1
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (self._failures - 1))
        self._rests_until = asyncio.get_running_loop().time() + wait

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._finish(connection)

    def _finish(self, connection: ServerConnection) -> None:
        self._closing.start(self._close(connection))

    async def _close(self, connection: ServerConnection) -> None:
        with suppress(Exception):
            await connection.close()
