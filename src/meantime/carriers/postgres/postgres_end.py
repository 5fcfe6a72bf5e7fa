"""A connection to PostgreSQL, as both ends use it: one statement at a time, and a wake by NOTIFY."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import TypeVar

from meantime.carriers.ends.carrier_end import CarrierEnd

from .postgres_client import PostgresAddress, PostgresClient, check_postgres, close_postgres, connect_postgres

T = TypeVar("T")
Item = TypeVar("Item")
POLL = 2.0  # seconds after which messages are looked for without a NOTIFY; it also finds a dead server
MOST_READ = 32  # messages in one read
MOST_WAITING = 8192  # messages that wait for one recipient; more are dropped


class PostgresEnd(CarrierEnd[Item]):
    def __init__(self, address: PostgresAddress) -> None:
        super().__init__()
        check_postgres()
        self._address = address
        self._client: PostgresClient | None = None
        self._lock = asyncio.Lock()  # a connection performs one statement at a time
        self._woken = asyncio.Event()
        self._lost: asyncio.Future[str] | None = None

    @abstractmethod
    async def _prepare(self, client: PostgresClient) -> None:
        """Listens, on a new connection."""

    @abstractmethod
    async def _read(self) -> int:
        """Reads messages and passes them on; returns how many there were."""

    async def _ask(self, statement: Callable[[PostgresClient], Awaitable[T]]) -> T:
        """Performs a statement. The connection is given up when it fails: whatever the reason, a new one
        begins with a known state."""
        async with self._lock:
            if self._client is None:
                raise ConnectionError("PostgreSQL is not connected.")
            try:
                return await statement(self._client)
            except Exception as problem:
                self._lose(str(problem) or type(problem).__name__)
                raise

    async def _connect(self) -> None:
        client = await connect_postgres(self._address)
        self._lost = asyncio.get_running_loop().create_future()
        try:
            client.add_termination_listener(lambda *_: self._lose("The connection to PostgreSQL was lost."))
            await self._prepare(client)
        except BaseException:
            client.terminate()
            raise
        self._client = client
        self._woken.set()

    async def _until_lost(self) -> str:
        assert self._lost is not None
        reading = asyncio.get_running_loop().create_task(self._keep_reading())
        try:
            await asyncio.wait((reading, self._lost), return_when=asyncio.FIRST_COMPLETED)
            if not self._lost.done():
                return str(reading.exception())
            return self._lost.result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _keep_reading(self) -> None:
        while True:
            try:
                async with asyncio.timeout(POLL):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            while await self._read() == MOST_READ:
                pass

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await close_postgres(client)

    def _wake(self, *_: object) -> None:
        self._woken.set()

    def _lose(self, reason: str) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(reason)
