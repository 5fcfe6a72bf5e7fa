"""A worker's end on PostgreSQL. Its role can call five functions, and reads and writes no table."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from meantime.carriers.ends.callback_guard import call_back
from meantime.ports.carrier import FromOwner, Offered, StateChanged, check_free, check_name, check_size

from .postgres_client import PostgresAddress, PostgresClient
from .postgres_end import MOST_READ, MOST_WAITING, PostgresEnd

PULL_POLL = 0.5  # seconds: an offer that is not acknowledged becomes free without a NOTIFY
PULL = "SELECT * FROM worker_pull($1, $2, $3)"
SETTLE = "SELECT worker_settle($1, $2::bigint[], $3::integer[], $4::boolean[])"
SEND = "SELECT worker_send($1, $2::bytea[], $3)"
RECEIVE = "SELECT * FROM worker_receive($1, $2)"
CHANNEL = "SELECT worker_channel($1, $2)"


class WorkerItem(Struct):
    """A message to the owner; or with a receipt, an acknowledgement or a release."""

    data: bytes = b""
    receipt: str = ""
    is_done: bool = False


class PostgresWorker(PostgresEnd[WorkerItem]):
    """Args:
    address: The database, with the worker's own role.
    worker: The worker's name.
    """

    def __init__(self, address: PostgresAddress, worker: str) -> None:
        super().__init__(address)
        self._worker = check_name("worker", worker)
        self._receive: FromOwner | None = None
        self._offered = asyncio.Event()
        self._listening: set[str] = set()  # pools, on this connection

    @property
    def worker(self) -> str:
        return self._worker

    async def open(self, receive: FromOwner, changed: StateChanged) -> None:
        self._receive = receive
        await self._open(changed)

    async def close(self) -> None:
        self._receive = None
        await super().close()
        self._offered.set()

    async def pull(self, pool: str, free: int, wait: float) -> list[Offered]:
        check_name("pool", pool)
        check_free(free)
        loop = asyncio.get_running_loop()
        over = loop.time() + wait
        while not self._is_closed and await self.until_up(over - loop.time()):
            self._offered.clear()  # before the look: an offer that comes meanwhile is not missed
            offers = await self._pull_now(pool, free)
            left = over - loop.time()
            if offers or left <= 0:
                return offers
            try:
                async with asyncio.timeout(min(left, PULL_POLL)):
                    await self._offered.wait()
            except TimeoutError:
                pass
        return []

    def acknowledge(self, offered: Offered) -> None:
        self._send(WorkerItem(receipt=offered.receipt, is_done=True), 0)

    def release(self, offered: Offered) -> None:
        self._send(WorkerItem(receipt=offered.receipt), 0)

    def to_owner(self, data: bytes) -> bool:
        return self._send(WorkerItem(check_size("message", data)), len(data))

    async def _pull_now(self, pool: str, free: int) -> list[Offered]:
        try:
            if pool not in self._listening:
                await self._ask(lambda client: self._listen(client, pool))
                self._listening.add(pool)
            rows = await self._ask(lambda client: client.fetch(PULL, self._worker, pool, free))
        except Exception:  # the connection is given up, and the next one is waited for
            return []
        return [Offered(pool, key, data, f"{id}:{attempt}") for id, key, data, attempt in rows]

    async def _listen(self, client: PostgresClient, pool: str) -> None:
        channel = await client.fetchval(CHANNEL, self._worker, pool)
        await client.add_listener(channel, lambda *_: self._offered.set())

    async def _prepare(self, client: PostgresClient) -> None:
        self._listening.clear()
        channel = await client.fetchval(CHANNEL, self._worker, "")
        await client.add_listener(channel, self._wake)

    async def _read(self) -> int:
        rows = await self._ask(lambda client: client.fetch(RECEIVE, self._worker, MOST_READ))
        for _, data in rows:
            if self._receive is not None:
                call_back(self._receive, data)
        return len(rows)

    async def _write(self, batch: list[WorkerItem]) -> None:
        settled = [item for item in batch if item.receipt]
        datas = [item.data for item in batch if not item.receipt]
        if settled:
            pairs = [item.receipt.split(":") for item in settled]
            ids, attempts = [int(id) for id, _ in pairs], [int(attempt) for _, attempt in pairs]
            done = [item.is_done for item in settled]
            await self._ask(lambda client: client.execute(SETTLE, self._worker, ids, attempts, done))
        if datas:
            await self._ask(lambda client: client.execute(SEND, self._worker, datas, MOST_WAITING))
