"""Answers of HTTP servers that refuse a request before they have read it, and close the connection.

A write finds it closed then. The transport of the event loop gives up what it has not read, and httpx says
that the connection was lost, where the server has said 401 or 413.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any


def read_early_answers(client: Any) -> None:
    """client: of httpx or httpx2, or a transport of theirs. They have no public way to do that."""
    mounts: dict[object, Any] = getattr(client, "_mounts", {})  # proxies of the environment
    for transport in (getattr(client, "_transport", client), *mounts.values()):
        pool: Any = getattr(transport, "_pool", None)
        backend = getattr(pool, "_network_backend", None)
        if backend is not None:
            pool._network_backend = _Backend(backend)


class _Backend:
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def connect_tcp(self, *given: Any, **named: Any) -> Any:
        from anyio.abc import SocketStream  # not before a client has loaded it

        stream = await self._inner.connect_tcp(*given, **named)
        connected = getattr(stream, "_stream", None)
        if isinstance(connected, SocketStream):
            stream._stream = _TcpStream(connected)
        return stream


class _TcpStream:
    """A stream of anyio from which everything that arrived can be read after a write has failed: by a second
    descriptor."""

    def __init__(self, inner: Any) -> None:
        from anyio import BrokenResourceError
        from anyio.abc import SocketAttribute

        self._inner = inner
        self._broken = BrokenResourceError
        self._arrived = inner.extra(SocketAttribute.raw_socket).dup()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def receive(self, max_bytes: int = 65_536) -> bytes:
        try:
            return await self._inner.receive(max_bytes)
        except self._broken:
            with suppress(OSError):
                if data := self._arrived.recv(max_bytes):
                    return data
            raise

    async def send(self, item: bytes) -> None:
        with suppress(self._broken):  # TLS over this would read no more; `receive` fails at the end
            await self._inner.send(item)

    async def aclose(self) -> None:
        self._arrived.close()
        await self._inner.aclose()
