"""A server that a wrap holds, as `RemoteTaskPoll` asks it about a task."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from meantime.ports.wrapped_server import RemoteAnswer

from .errors import ServerRefused, Unanswered


class HeldLink:
    """Implements remote_task_poll.TaskLink, and is its own connection: the wrap starts its server again."""

    def __init__(self, held: RemoteAnswer) -> None:
        self._ask = held.ask

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[HeldLink]:
        yield self

    def answered(self) -> None:
        pass

    def renounce(self, connection: Any) -> None:
        pass

    def follow(self, task: str, said: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Its host gets what the server says by itself; asking now and then has to do."""
        return lambda: None

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        said = await self._ask(method, params)
        if isinstance(said, str):
            raise Unanswered(said)
        result, error = said
        if isinstance(error, dict):
            given = cast("dict[str, Any]", error)
            code, message = given.get("code"), given.get("message")
            raise ServerRefused(code if isinstance(code, int) else 0, str(message), given.get("data"))
        return cast("dict[str, Any]", result) if isinstance(result, dict) else {}
