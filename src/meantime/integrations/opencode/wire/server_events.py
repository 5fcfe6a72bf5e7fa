"""One stream of a server's events, shared by all who listen to a session.

Events are hints: the server keeps none, so whoever listens is told of every gap, and looks for himself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from typing import Any, NamedTuple

import msgspec

from meantime.integrations.opencode.errors import Away, Denied

from .api_client import ApiClient

GAP = "gap"  # something may have been missed: the stream has begun, broke, or was too much
MOST = 10_000  # events that a listener may be behind
SETTLE = 2.0  # seconds
WAITS = (0.05, 0.2, 0.5, 1.0, 2.0)  # seconds before the first, second, … try to connect again


class ServerEvent(NamedTuple):
    type: str
    session: str
    data: dict[str, Any]


class Subscription:
    """One who listens: to a session, and to those that it has started."""

    def __init__(self, session: str) -> None:
        self.sessions = {session}
        self._events = list[ServerEvent]()
        self._news = asyncio.Event()

    def put(self, event: ServerEvent) -> None:
        if len(self._events) >= MOST:
            self._events = [ServerEvent(GAP, "", {})]
        self._events.append(event)
        self._news.set()

    async def wait(self, timeout: float) -> list[ServerEvent]:
        """The next event; nothing if nothing comes for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._news.wait()
        self._news.clear()
        events, self._events = self._events, []
        return events


class ServerEvents:
    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._subscriptions = set[Subscription]()
        self._stream: asyncio.Task[None] | None = None
        self.connected = asyncio.Event()
        self.breaks = 0  # how often the stream ended by itself

    @contextlib.contextmanager
    def listening(self, session: str) -> Generator[Subscription]:
        """Listens while it is open; the stream is opened with the first, and closed with the last."""
        subscription = Subscription(session)
        self._subscriptions.add(subscription)
        if self._stream is None:
            self._stream = asyncio.get_running_loop().create_task(self._run())
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            if not self._subscriptions:
                self._stream.cancel()
                self._stream = None
                self.connected.clear()

    async def settle(self) -> None:
        """Waits until events are received; but without a stream we do not wait for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE):
                await self.connected.wait()

    async def _run(self) -> None:
        failures = 0
        while True:
            with contextlib.suppress(Away, Denied):
                async with self._client.events() as events:
                    async for data in events:
                        if failures >= 0:  # the first says that it is connected: from now on we hear all
                            failures = -1
                            self.connected.set()
                            self._tell_gap()
                        self._dispatch(data)
            self.connected.clear()
            self.breaks += 1
            self._tell_gap()
            failures = max(failures, 0)
            await asyncio.sleep(WAITS[min(failures, len(WAITS) - 1)])
            failures += 1

    def _tell_gap(self) -> None:
        for subscription in self._subscriptions:
            subscription.put(ServerEvent(GAP, "", {}))

    def _dispatch(self, data: bytes) -> None:
        event = _event(data)
        if event is None:
            return
        for subscription in self._subscriptions:
            if event.session in subscription.sessions:
                subscription.put(event)
            elif event.type == "session.created" and _parent(event) in subscription.sessions:
                subscription.sessions.add(event.session)


def _event(data: bytes) -> ServerEvent | None:
    """Where the session's id stands differs by event and by version."""
    try:
        said: dict[str, Any] = msgspec.json.decode(data)
        payload: dict[str, Any] = said.get("payload", said)
        properties: dict[str, Any] = payload["properties"]
        about: dict[str, Any] = properties.get("info") or properties.get("part") or {}
        session: str = properties.get("sessionID") or about.get("sessionID") or about.get("id") or ""
        return ServerEvent(payload["type"], session, properties)
    except (msgspec.MsgspecError, AttributeError, KeyError, TypeError):
        return None  # of a kind that we do not know


def _parent(event: ServerEvent) -> str:
    return event.data.get("info", {}).get("parentID", "")
