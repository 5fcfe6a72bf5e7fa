"""An OpenCode server that somebody else runs. While it is away, it is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .wire.api_client import Client
    from .wire.server_events import Feed


class Remote:
    def __init__(self, url: str, password: str) -> None:
        self._url = url
        self._password = password
        self._wire: tuple[Client, Feed] | None = None

    async def reach(self) -> tuple[Client, Feed]:
        if self._wire is None:
            from .wire.api_client import Client
            from .wire.server_events import Feed

            client = Client(self._url, self._password)
            self._wire = client, Feed(client)
        await self._wire[0].wait()
        return self._wire

    async def close(self, *, keep: bool) -> None:
        if self._wire is not None:
            await self._wire[0].close()
