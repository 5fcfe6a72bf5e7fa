"""Roles of workers: each can call five functions under its own name, and nothing else in the database.

Where the owner may not create roles, an administrator runs the same statements; or workers connect with the
owner's login. That is the weaker way: each of them can then read every offer and speak for any other.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from urllib.parse import quote, urlsplit, urlunsplit

from meantime.ports.carrier import check_name

from .carrier_schema import migrate
from .postgres_client import (
    PostgresAddress,
    PostgresClient,
    check_postgres,
    close_postgres,
    connect_postgres,
)

FUNCTIONS = (
    "worker_pull(text, text, integer)",
    "worker_settle(text, bigint[], integer[], boolean[])",
    "worker_send(text, bytea[], integer)",
    "worker_receive(text, integer)",
    "worker_channel(text, text)",
)
ACCOUNT = """
    INSERT INTO account VALUES ($1, $2, $3) ON CONFLICT (role) DO UPDATE SET pools = EXCLUDED.pools
"""
END_CONNECTIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1"


def role_name(address: PostgresAddress, worker: str) -> str:
    """Names of roles belong to the whole server and have at most 63 bytes."""
    return f"mt_{hashlib.sha256(f'{address.space}/{worker}'.encode()).hexdigest()[:32]}"


async def add_worker(address: PostgresAddress, worker: str, pools: Sequence[str]) -> PostgresAddress:
    """Makes a role for a worker, or a new password for the one it has.

    Args:
        address: With the owner's login; the schema is made if it is not there.
        worker: The worker's name.
        pools: The pools that it may pull from.

    Returns:
        The address with the worker's login.
    """
    check_postgres()
    check_name("worker", worker)
    names = [check_name("pool", pool) for pool in pools]
    role, password = role_name(address, worker), secrets.token_urlsafe(32)
    client = await connect_postgres(address)
    try:
        await migrate(client, address)
        async with client.transaction():
            await client.execute("SET LOCAL synchronous_commit = on")
            await _make_role(client, role, password)
            await client.execute(f"GRANT USAGE ON SCHEMA {address.schema} TO {role}")
            for function in FUNCTIONS:
                await client.execute(f"GRANT EXECUTE ON FUNCTION {function} TO {role}")
            await client.execute(ACCOUNT, role, worker, names)
    finally:
        await close_postgres(client)
    return PostgresAddress(_with_login(address.url, role, password), address.space)


async def remove_worker(address: PostgresAddress, worker: str) -> bool:
    """Takes the role away, and ends its connections. Returns whether there was one."""
    check_postgres()
    role = role_name(address, check_name("worker", worker))
    client = await connect_postgres(address)
    try:
        await client.execute("DELETE FROM account WHERE role = $1", role)
        is_there = bool(await client.fetchval("SELECT true FROM pg_roles WHERE rolname = $1", role))
        if is_there:
            await client.execute(f"ALTER ROLE {role} NOLOGIN")
            # An owner that is not a superuser may end connections of, and drop, its own roles only.
            await client.execute(f"GRANT {role} TO CURRENT_USER")
            await client.execute(END_CONNECTIONS, role)
            await client.execute(f"DROP OWNED BY {role}")
            await client.execute(f"DROP ROLE {role}")
        return is_there
    finally:
        await close_postgres(client)


async def list_workers(address: PostgresAddress) -> list[tuple[str, list[str]]]:
    """Name and pools of each worker that has a role."""
    check_postgres()
    client = await connect_postgres(address)
    try:
        await migrate(client, address)
        found = await client.fetch("SELECT worker, pools FROM account ORDER BY worker")
        return [(row[0], list(row[1])) for row in found]
    finally:
        await close_postgres(client)


async def _make_role(client: PostgresClient, role: str, password: str) -> None:
    """Both parts are of letters, digits, '-' and '_' of our own making: nothing needs to be quoted."""
    is_there = await client.fetchval("SELECT true FROM pg_roles WHERE rolname = $1", role)
    verb = "ALTER" if is_there else "CREATE"
    await client.execute(
        f"{verb} ROLE {role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT 4 "
        f"PASSWORD '{password}'"
    )


def _with_login(url: str, user: str, password: str) -> str:
    parts = urlsplit(url)
    hosts = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(user)}:{quote(password)}@{hosts}"))
