"""The owner's end on PostgreSQL. It makes the schema, and is the only owner in it."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from msgspec import Struct

from meantime.carriers.ends.callback_guard import call_back
from meantime.ports.carrier import ACK_WAIT, FromWorker, StateChanged, check_name, check_size

from .carrier_schema import migrate, take_ownership
from .postgres_client import PostgresAddress, PostgresClient
from .postgres_end import MOST_READ, MOST_WAITING, PostgresEnd

MOST_QUEUED = 65_536  # offers of one pool; more are dropped
STALE = 60.0  # seconds after which a message that nobody read is deleted

OFFER = """
    INSERT INTO offer (pool, key, data)
    SELECT DISTINCT ON (pool, key) pool, key, data
    FROM unnest($1::text[], $2::text[], $3::bytea[]) AS each (pool, key, data)
    WHERE (SELECT count(*) FROM (SELECT FROM offer o WHERE o.pool = each.pool LIMIT $4) AS few) < $4
    ON CONFLICT (pool, key) DO UPDATE SET data = EXCLUDED.data
"""
WAKE = "SELECT pg_notify(channel('pool/' || pool), '') FROM unnest($1::text[]) AS pools (pool)"
WITHDRAW = """
    DELETE FROM offer o USING unnest($1::text[], $2::text[]) AS each (pool, key)
    WHERE o.pool = each.pool AND o.key = each.key AND o.held_until < now()
"""
SEND = "SELECT send('', $1::text[], $2::bytea[], $3)"
SWEEP = "DELETE FROM message WHERE sent_at < now() - make_interval(secs => $1)"
IS_EMPTY = "SELECT NOT EXISTS (SELECT FROM offer WHERE pool = $1)"


class OwnerItem(Struct):
    """A row to be written: an offer, a withdrawal, or a message to the worker `address`."""

    kind: str
    address: str
    key: str = ""
    data: bytes = b""


class PostgresOwner(PostgresEnd[OwnerItem]):
    """Args:
    address: The database, with a role that may create a schema in it.
    ack_wait: Seconds after which an offer that was pulled and not acknowledged is another worker's.
    """

    def __init__(self, address: PostgresAddress, *, ack_wait: float = ACK_WAIT) -> None:
        super().__init__(address)
        self._ack_wait = ack_wait
        self._receive: FromWorker | None = None
        self._unwritten: Counter[str] = Counter()  # offers, by pool
        self._offers: Counter[str] = Counter()  # made so far, by pool
        self._backend: tuple[int, str] | None = None  # of the last connection

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        self._receive = receive
        await self._open(changed)

    async def close(self) -> None:
        self._receive = None
        await super().close()

    async def add_pool(self, pool: str) -> None:
        check_name("pool", pool)  # a queue is nothing but its rows

    def offer(self, pool: str, key: str, data: bytes) -> bool:
        check_name("pool", pool)
        check_name("offer", key)
        if not self._send(OwnerItem("offer", pool, key, check_size("offer", data)), len(data)):
            return False
        self._offers[pool] += 1
        self._unwritten[pool] += 1
        return True

    def withdraw(self, pool: str, key: str) -> None:
        self._send(OwnerItem("withdraw", check_name("pool", pool), check_name("offer", key)), 0)

    def to_worker(self, worker: str, data: bytes) -> bool:
        item = OwnerItem("message", check_name("worker", worker), data=check_size("message", data))
        return self._send(item, len(data))

    async def is_empty(self, pool: str) -> bool:
        check_name("pool", pool)
        if not self.state.up or self._unwritten[pool]:
            return False
        made = self._offers[pool]
        try:
            found = bool(await self._ask(lambda client: client.fetchval(IS_EMPTY, pool)))
        except Exception:  # of whatever kind: it is not certain
            return False
        return found and made == self._offers[pool] and self.state.up

    async def _prepare(self, client: PostgresClient) -> None:
        self._backend = await take_ownership(client, self._address, self._backend)
        await migrate(client, self._address)
        await client.execute(
            "INSERT INTO setting VALUES ('ack_wait', $1) "
            "ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value",
            self._ack_wait,
        )
        channel = await client.fetchval("SELECT channel('to/')")
        await client.add_listener(channel, self._wake)

    async def _read(self) -> int:
        rows = await self._ask(lambda client: client.fetch("SELECT * FROM receive('', $1)", MOST_READ))
        for worker, data in rows:
            if self._receive is not None:
                call_back(self._receive, worker, data)
        if not rows:
            await self._ask(lambda client: client.execute(SWEEP, STALE))
        return len(rows)

    async def _write(self, batch: list[OwnerItem]) -> None:
        try:
            for kind, items in groupby(batch, key=lambda item: item.kind):
                await self._write_alike(kind, list(items))
        finally:
            for item in batch:
                self._was_dropped(item)

    def _was_dropped(self, item: OwnerItem) -> None:
        """Or written: it is not in this process any more."""
        if item.kind == "offer":
            self._unwritten[item.address] -= 1

    async def _write_alike(self, kind: str, items: list[OwnerItem]) -> None:
        addresses = [item.address for item in items]
        keys, datas = [item.key for item in items], [item.data for item in items]
        match kind:
            case "offer":
                await self._ask(lambda client: client.execute(OFFER, addresses, keys, datas, MOST_QUEUED))
                await self._ask(lambda client: client.execute(WAKE, sorted(set(addresses))))
            case "withdraw":
                await self._ask(lambda client: client.execute(WITHDRAW, addresses, keys))
            case _:
                await self._ask(lambda client: client.execute(SEND, addresses, datas, MOST_WAITING))
