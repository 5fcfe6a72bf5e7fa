"""A space of its own on the session's PostgreSQL server, with its ends."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from unittest import mock

from tests.waiting import LIMIT

from meantime.carriers.postgres import postgres_client
from meantime.carriers.postgres.postgres_client import PostgresAddress
from meantime.carriers.postgres.postgres_owner import PostgresOwner
from meantime.carriers.postgres.postgres_worker import PostgresWorker
from meantime.carriers.postgres.worker_roles import add_worker, remove_worker

from .postgres_server import PostgresServer


class PostgresSite:
    ack_wait = 1.0

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.address = PostgresAddress(server.url(), f"t{secrets.token_hex(4)}")
        self.logins: dict[str, PostgresAddress] = {}

    def owner(self) -> PostgresOwner:
        return PostgresOwner(self.address, ack_wait=self.ack_wait)

    def worker(self, name: str) -> PostgresWorker:
        return PostgresWorker(self.logins[name], name)

    async def stop_server(self) -> None:
        await asyncio.to_thread(self.server.kill)

    async def start_server(self) -> None:
        await asyncio.to_thread(self.server.start)

    async def empty_server(self) -> None:
        """Nothing is left to do: its tables are unlogged, so the kill has emptied them."""

    async def cut_connections(self) -> None:
        ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'meantime'"
        await self.sql(f"SELECT pg_terminate_backend(pid) FROM ({ours}) AS ours")

    async def sql(self, text: str) -> str:
        return await asyncio.to_thread(self.server.sql, text)


@contextmanager
def patience() -> Generator[None]:
    """For what is only prepared: a server is not gone because the machine is busy."""
    limits = ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")
    session = postgres_client.SESSION | dict.fromkeys(limits, f"{LIMIT:.0f}s")
    with mock.patch.multiple(postgres_client, CONNECT_SECONDS=LIMIT, COMMAND_SECONDS=LIMIT, SESSION=session):
        yield


@asynccontextmanager
async def postgres_site(server: PostgresServer) -> AsyncGenerator[PostgresSite]:
    site = PostgresSite(server)
    with patience():
        for worker in ("w1", "w2"):
            site.logins[worker] = await add_worker(site.address, worker, ("red", "blue"))
    try:
        yield site
    finally:
        with patience():
            for worker in site.logins:
                await remove_worker(site.address, worker)
        await site.sql(f"DROP SCHEMA {site.address.schema} CASCADE")
