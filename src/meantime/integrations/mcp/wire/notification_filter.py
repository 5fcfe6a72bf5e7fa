"""Between a wire and the SDK: notifications that we want are taken out as they come, in their order, at
next to no cost. The SDK would make a task of each, and a server may send a hundred thousand."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

OnNotification = Callable[[str, dict[str, Any]], None]
OURS = frozenset(
    {
        "notifications/progress",
        "notifications/tools/list_changed",
        "notifications/tasks",
        "notifications/tasks/status",
        "notifications/message",
    }
)


class Sieve:
    """A read stream of the SDK's kind around another. `ended` is called when there is no more."""

    def __init__(self, stream: Any, heard: OnNotification, ended: Callable[[], None]) -> None:
        self._stream = stream
        self._heard = heard
        self._ended = ended

    async def receive(self) -> SessionMessage | Exception:
        while True:
            try:
                item: SessionMessage | Exception = await self._stream.__anext__()
            except BaseException:
                self._ended()
                raise
            message = item.message if isinstance(item, SessionMessage) else None
            if not isinstance(message, JSONRPCNotification) or message.method not in OURS:
                return item
            self._heard(message.method, message.params or {})

    def __aiter__(self) -> Sieve:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Sieve:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self._stream.__aexit__(exc_type, exc_val, exc_tb)
