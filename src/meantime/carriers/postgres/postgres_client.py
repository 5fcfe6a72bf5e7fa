"""The part of asyncpg that we use, with types: the one place that knows the package."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.ports.carrier import check_name

CONNECT_SECONDS = 5.0
COMMAND_SECONDS = 5.0  # for one statement: a server that does not answer is gone
CLOSE_SECONDS = 1.0
SESSION = {
    "application_name": "meantime",
    # A transaction of a frozen process must not hold its rows for ever.
    "idle_in_transaction_session_timeout": "5s",
    "statement_timeout": "10s",
    "synchronous_commit": "off",  # offers and messages may be lost: nobody waits for the disk
    "lock_timeout": "3s",
    # The server notices within seconds that a machine is gone, and lets its locks go.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}


class PostgresAddress(Struct, frozen=True):
    """A connection URI, and the name that the schema's is made of."""

    url: str
    space: str = "meantime"

    @property
    def schema(self) -> str:
        return f'"meantime_{self.space}"'


class PostgresClient(Protocol):
    async def execute(self, query: str, *args: object) -> str: ...
    async def fetch(self, query: str, *args: object) -> Sequence[Sequence[Any]]: ...
    async def fetchval(self, query: str, *args: object) -> Any: ...
    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...
    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...
    def transaction(self) -> Any: ...
    async def close(self, *, timeout: float) -> None: ...
    def terminate(self) -> None: ...


def read_postgres_address(url: str) -> PostgresAddress:
    """Reads `postgres://USER:PASSWORD@HOST/DATABASE?space=NAME&sslmode=verify-full&sslrootcert=FILE`.

    Raises:
        InvalidInput: It cannot be read. The text does not repeat the password.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        is_known = parts.scheme in ("postgres", "postgresql")
    except ValueError:
        is_known, parts, query = False, urlsplit(""), {}
    if not is_known:
        raise InvalidInput(
            "This is not the address of a PostgreSQL database.",
            hint="Write it as postgres://USER:PASSWORD@HOST:5432/DATABASE.",
        )
    space = check_name("space", query.pop("space", "meantime"))
    return PostgresAddress(urlunsplit(parts._replace(query=urlencode(query))), space)


def check_postgres() -> None:
    """Raises InvalidInput where the client of PostgreSQL is not installed."""
    if importlib.util.find_spec("asyncpg") is None:
        raise InvalidInput(
            "The PostgreSQL carrier needs an extra.",
            hint="pip install 'meantime[workers]'",
            code="extra_missing",
        )


async def connect_postgres(address: PostgresAddress) -> PostgresClient:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    connect = cast(Callable[..., Any], asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]
    try:
        found = await connect(
            address.url,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings={**SESSION, "search_path": f"{address.schema}, pg_temp"},
        )
    except (ConnectionResetError, asyncpg.ConnectionDoesNotExistError):
        raise ConnectionError(
            "PostgreSQL closed the connection at the login without a word. Its log says why."
        ) from None
    return cast(PostgresClient, found)


async def close_postgres(client: PostgresClient) -> None:
    """A server that does not answer the goodbye is left: whatever was asked of it before is done."""
    try:
        await client.close(timeout=CLOSE_SECONDS)
    except Exception:
        client.terminate()
