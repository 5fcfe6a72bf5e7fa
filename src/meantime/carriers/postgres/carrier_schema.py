"""The schema of the carrier: numbered migrations, and one owner at a time."""

from __future__ import annotations

import asyncio
from importlib.resources import files

from .postgres_client import PostgresAddress, PostgresClient

OWNER_WAIT = 3.0  # seconds for the connection of an owner before to end
MINE = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
BACKEND = "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()"
END_BACKEND = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2
"""
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended($1, 1))"


async def take_ownership(
    client: PostgresClient, address: PostgresAddress, before: tuple[int, str] | None
) -> tuple[int, str]:
    """Holds a lock for as long as the connection lives. An offer of the connection before can then not land
    after this one has found the queue empty.

    Args:
        before: The backend of our last connection, which is ended if it is still there.

    Returns:
        The backend of this connection.

    Raises:
        ConnectionError: Another owner has the schema.
    """
    if before is not None:
        await client.execute(END_BACKEND, *before)
    loop = asyncio.get_running_loop()
    over = loop.time() + OWNER_WAIT
    while not await client.fetchval(MINE, address.schema):
        if loop.time() > over:
            raise ConnectionError(
                f"Another owner is connected with the space {address.space}. "
                "Give each owner a space of its own: postgres://…?space=NAME."
            )
        await asyncio.sleep(0.05)
    [(pid, started)] = await client.fetch(BACKEND)
    return pid, started


async def migrate(client: PostgresClient, address: PostgresAddress) -> None:
    """Brings the schema to the newest version, in one transaction."""
    schema = address.schema
    async with client.transaction():
        await client.execute(ONE_AT_A_TIME, schema)
        await client.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        await client.execute("CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY)")
        done = {number for (number,) in await client.fetch("SELECT number FROM migration")}
        for number, text in migrations():
            if number not in done:
                await client.execute(text.replace("{schema}", schema))
                await client.execute("INSERT INTO migration VALUES ($1)", number)


def migrations() -> list[tuple[int, str]]:
    folder = files("meantime.carriers.postgres") / "migrations"
    found = [each for each in folder.iterdir() if each.name.endswith(".sql")]
    return sorted((int(each.name.partition("_")[0]), each.read_text("utf-8")) for each in found)
