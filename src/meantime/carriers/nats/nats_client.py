"""The part of nats-py that we use, with types: the one place that knows the package."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

from meantime.kernel.errors import InvalidInput

PING_SECONDS = 2  # a server that does not answer two pings is gone
CONNECT_SECONDS = 3
MOST_RECEIVED = 8192  # messages of one subscription that wait for our event loop; the client drops more
MOST_RECEIVED_BYTES = 64 * 1024 * 1024


class NatsMessage(Protocol):
    @property
    def subject(self) -> str: ...
    @property
    def reply(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str] | None: ...


class NatsClient(Protocol):
    @property
    def is_connected(self) -> bool: ...

    @property
    def max_payload(self) -> int: ...

    async def connect(
        self,
        servers: list[str],
        *,
        error_cb: Callable[[Exception], Awaitable[None]],
        disconnected_cb: Callable[[], Awaitable[None]],
        closed_cb: Callable[[], Awaitable[None]],
        allow_reconnect: bool,
        connect_timeout: int,
        ping_interval: int,
        max_outstanding_pings: int,
        tls: ssl.SSLContext | None,
        tls_hostname: str | None,
        max_reconnect_attempts: int,
        reconnect_time_wait: float,
        user: str | None,
        password: str | None,
    ) -> None: ...

    async def publish(self, subject: str, payload: bytes, reply: str = "") -> None: ...

    async def request(self, subject: str, payload: bytes, timeout: float) -> NatsMessage: ...

    async def subscribe(
        self,
        subject: str,
        *,
        cb: Callable[[NatsMessage], Awaitable[None]],
        pending_msgs_limit: int = MOST_RECEIVED,
        pending_bytes_limit: int = MOST_RECEIVED_BYTES,
    ) -> object: ...

    async def flush(self) -> None: ...

    async def close(self) -> None: ...


def check_nats() -> None:
    """Raises InvalidInput where the client of NATS is not installed."""
    if importlib.util.find_spec("nats") is None:
        raise InvalidInput(
            "The NATS carrier needs an extra.", hint="pip install 'meantime[workers]'", code="extra_missing"
        )


def nats_client() -> NatsClient:
    """A client that is not connected yet."""
    from nats.aio.client import Client

    logging.getLogger("asyncio").addFilter(_is_news)  # once, however often
    return cast(NatsClient, Client())


def _is_news(record: logging.LogRecord) -> bool:
    """asyncio before 3.12 warns of every TLS connection that is closed."""
    return "eof_received() has no effect" not in record.getMessage()


async def connect_once(
    client: NatsClient,
    server: str,
    *,
    user: str,
    password: str,
    tls: ssl.SSLContext | None,
    tls_name: str,
    failed: Callable[[Exception], Awaitable[None]],
    closed: Callable[[], Awaitable[None]],
) -> None:
    """Connects to one server, or raises why not, within some seconds. By itself the client tries a port that
    nobody listens on for ever, and then does not say why."""
    problems: list[Exception] = []

    async def failed_once(problem: Exception) -> None:
        problems.append(problem)
        del problems[:-1]
        await failed(problem)

    try:
        async with asyncio.timeout(2 * CONNECT_SECONDS):
            await client.connect(
                [f"{'tls' if tls is not None else 'nats'}://{server}"],
                user=user or None,
                password=password or None,
                tls=tls,
                tls_hostname=tls_name or None,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0.0,
                connect_timeout=CONNECT_SECONDS,
                ping_interval=PING_SECONDS,
                max_outstanding_pings=2,
                error_cb=failed_once,
                closed_cb=closed,
                disconnected_cb=closed,
            )
    except Exception as problem:
        said = problem
        if problems and (isinstance(problem, TimeoutError) or "no servers" in str(problem).lower()):
            said = problems[-1]
        raise ConnectionError(str(said) or type(said).__name__) from None


def abort(client: NatsClient) -> None:
    """Drops the connection of a client whose close waits for a server that takes nothing. The package
    has no public way to do that."""
    transport: Any = getattr(client, "_transport", None)
    writer: Any = getattr(transport, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()
