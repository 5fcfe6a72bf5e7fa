"""The part of nats-py that we use, with types: the one place that knows the package."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any, Protocol

from meantime.kernel.errors import InvalidInput

PING_SECONDS = 2  # a server that does not answer two pings is gone
CONNECT_SECONDS = 3
CLOSE_SECONDS = 1.0
RELOAD = 0.5  # seconds in which a server reads its accounts again, if nobody is slow to log in
AGAIN = 0.1  # seconds between two attempts to log in
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


_CUT = (BrokenPipeError, ConnectionResetError, ConnectionAbortedError, ssl.SSLError)


class LoginRefused(ConnectionError):
    """The server does not accept a login. It says so, or closes the connection in place of an answer: what it
    said is lost where the reset arrives before it was read.
    """


@cache
def _client_class() -> type[Any]:
    from nats.aio.client import Client

    logging.getLogger("asyncio").addFilter(_is_news)

    class SecureClient(Client):
        async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
            """The package leaves it to the server whether to encrypt: somebody in between could say no, and
            would be sent the password."""
            if initial_connection and "tls" in self.options:
                if not info.get("tls_required") and not info.get("tls_available"):
                    raise ConnectionError("The server does not offer TLS.")
                info["tls_required"] = True
            await super()._process_info(info, initial_connection)

    return SecureClient


def _is_news(record: logging.LogRecord) -> bool:
    """asyncio before 3.12 warns of every TLS connection that is closed."""
    return "eof_received() has no effect" not in record.getMessage()


async def log_in(
    server: str,
    *,
    user: str,
    password: str,
    tls: ssl.SSLContext | None,
    tls_name: str,
    failed: Callable[[Exception], Awaitable[None]],
    closed: Callable[[], Awaitable[None]],
    patience: float = RELOAD,
) -> NatsClient:
    """A client that is logged in to one server, within some seconds.

    A login that is refused is tried again for `patience` seconds. A server that reads its accounts again does
    not know a new login yet, cuts off everybody who is about to log in, even with a good login, and answers
    nobody else until that is done.

    Raises:
        LoginRefused: It stays refused.
        TimeoutError: The server does not answer.
        ConnectionError: It cannot be reached.
    """
    over = asyncio.get_running_loop().time() + patience
    while True:
        try:
            return await _log_in_once(server, user, password, tls, tls_name, failed, closed)
        except (LoginRefused, TimeoutError):
            if asyncio.get_running_loop().time() > over:
                raise
        await asyncio.sleep(AGAIN)


async def _log_in_once(
    server: str,
    user: str,
    password: str,
    tls: ssl.SSLContext | None,
    tls_name: str,
    failed: Callable[[Exception], Awaitable[None]],
    closed: Callable[[], Awaitable[None]],
) -> NatsClient:
    """By itself the client tries a port that nobody listens on for ever, and then does not say why."""
    client: NatsClient = _client_class()()
    problems: list[Exception] = []
    is_accepted = False

    async def failed_later(problem: Exception) -> None:
        problems[:] = [problem]
        if is_accepted:
            await failed(problem)

    async def closed_later() -> None:
        if is_accepted:
            await closed()

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
                error_cb=failed_later,
                closed_cb=closed_later,
                disconnected_cb=closed_later,
            )
        if not client.is_connected:  # the package takes the end of the connection for an answer
            raise ConnectionResetError("the connection was closed")
        is_accepted = True
        return client
    except Exception as problem:
        raise _login_error(problem, problems) from None
    finally:
        if not is_accepted:
            await close(client)


def _login_error(problem: Exception, before: list[Exception]) -> OSError:
    """before: what the client reported while it tried."""
    if before and (isinstance(problem, TimeoutError) or "no servers" in str(problem).lower()):
        problem = before[-1]
    if isinstance(problem, TimeoutError):
        return TimeoutError("it does not answer")
    said = (str(problem) or type(problem).__name__).removeprefix("nats: ").strip("'")
    is_cut = isinstance(problem, _CUT) and not isinstance(problem, ssl.SSLCertVerificationError)
    is_refused = is_cut or "uthorization" in said or "uthentication" in said
    return (LoginRefused if is_refused else ConnectionError)(said)


async def close(client: NatsClient) -> None:
    """Within a second, whatever the server does."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await client.close()
    except Exception:  # a client that was not connected fails to close
        _abort(client)


def _abort(client: NatsClient) -> None:
    """Drops the connection of a client whose close waits for a server that takes nothing. The package
    has no public way to do that."""
    transport: Any = getattr(client, "_transport", None)
    writer: Any = getattr(transport, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()
