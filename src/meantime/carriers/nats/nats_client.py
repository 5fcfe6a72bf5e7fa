"""The part of nats-py that we use, with types: the one place that knows the package."""

from __future__ import annotations

import importlib.util
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

    return cast(NatsClient, Client())


def abort(client: NatsClient) -> None:
    """Drops the connection of a client whose close waits for a server that takes nothing. The package
    has no public way to do that."""
    transport: Any = getattr(client, "_transport", None)
    writer: Any = getattr(transport, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()
