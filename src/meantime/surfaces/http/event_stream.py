"""GET /v1/events: a snapshot, then what changes, and a heartbeat in silence. Plain ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Generic, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from meantime.kernel.durations import iso
from meantime.ports.clock import Clock
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from .dependencies import Dependencies
from .event_encoding import deltas, frame
from .event_feed import Feed, JournalFeed
from .event_ring import Delta, F
from .http_settings import HttpSettings
from .long_polls import wait_disconnect
from .responses import encode
from .routing import RequestContext
from .snapshot import snapshot
from .task_lookup import find, scope
from .thread_requests import EventFilter

REPLAY_MOST = 1_000  # events: whoever missed more starts again
HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]


class Wanted(NamedTuple):
    """The subject of one stream."""

    query: Query
    task_id: str | None
    bounded: bool
    replay: bool
    since: int | None  # the last event that the client has seen

    @property
    def is_all(self) -> bool:
        """Everything, as it is in the ring."""
        query = self.query
        return query.thread is None and query.batch is None and self.task_id is None and not self.replay

    def fits(self, delta: Delta) -> bool:
        query = self.query
        return (
            (query.thread is None or delta.thread == query.thread)
            and (query.batch is None or delta.batch == query.batch)
            and (self.task_id is None or delta.task_id == self.task_id)
            and (self.since is None or delta.seq > self.since)
        )


async def stream_tasks(deps: Dependencies, asked: RequestContext[EventFilter, None]) -> Response:
    about = await wanted(deps.tasks, asked.params, last_event(asked.request), asked.thread)
    await deps.feed.join()
    return Streaming(EventStream(deps.tasks, deps.feed, deps.clock, deps.settings, about))


def last_event(request: Request) -> int | None:
    """The last event that a client says it has seen."""
    said = request.headers.get("last-event-id", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else None


async def wanted(tasks: Tasks, given: EventFilter, last: int | None, thread: str | None) -> Wanted:
    query = Query(scope(given.thread, thread), batch=given.batch)
    task = None if given.task is None else (await find(tasks, given.task, thread)).id
    since = last if given.replay else None
    return Wanted(query, task, given.snapshot == "bounded", given.replay, since)


class FeedStream(Generic[F]):
    """One client, from its first byte to its last. A subclass says what it is told."""

    def __init__(self, feed: JournalFeed[F], clock: Clock, heartbeat: float) -> None:
        self._feed = feed
        self._clock = clock
        self._heartbeat = heartbeat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The feed was joined before, so that a refusal could still be an answer of its own."""
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        listening = asyncio.create_task(_leaving(receive, gone))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            if scope["method"] != "HEAD":
                async for part in self._parts(gone):
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                    if gone.done():
                        return
            await send({"type": "http.response.body", "body": b""})
        finally:
            listening.cancel()
            await self._feed.leave()

    async def _parts(self, gone: asyncio.Future[None]) -> AsyncIterator[bytes]:
        ring = self._feed.ring
        cursor = ring.end
        async for part in self._beginning():
            yield part
        spoke = self._clock.monotonic()
        while not (ring.closed or gone.done()):
            found = ring.after(cursor)
            if found is None:
                missed, cursor = ring.end - cursor, ring.end
                async for part in self._again("slow", missed):
                    yield part
                spoke = self._clock.monotonic()
                continue
            part = self._text(found, cursor) if found else b""
            cursor += len(found)
            left = self._heartbeat - (self._clock.monotonic() - spoke)
            if not part and left <= 0:
                part = frame("heartbeat", encode({"ts": iso(self._clock.now())}))
            if part:
                yield part
                spoke = self._clock.monotonic()
            else:
                await ring.wait(cursor, left, gone)

    def _beginning(self) -> AsyncIterator[bytes]:
        """The missed events, if they are known; the whole state otherwise."""
        raise NotImplementedError

    def _text(self, found: Sequence[F], cursor: int) -> bytes:
        """The part of these that the client is told; they follow the cursor."""
        raise NotImplementedError

    def _snapshot(self) -> AsyncIterator[bytes]:
        raise NotImplementedError

    async def _again(self, reason: str, missed: int | None) -> AsyncIterator[bytes]:
        yield frame("resync", encode({"reason": reason, "missed": missed}))
        async for part in self._snapshot():
            yield part


async def can_replay(tasks: Tasks, since: int, upto: int) -> bool:
    """Whether the journal still has all that came after `since`, and it is not too much."""
    if since > await tasks.last_event() or upto - since > REPLAY_MOST:
        return False
    oldest = await tasks.events(0, 1)
    return not oldest or oldest[0].seq <= since + 1


class EventStream(FeedStream[Delta]):
    """Seed 001's stream: a snapshot of tasks, then a delta for every change."""

    def __init__(
        self, tasks: Tasks, feed: Feed, clock: Clock, settings: HttpSettings, wanted: Wanted
    ) -> None:
        super().__init__(feed, clock, settings.heartbeat)
        self._tasks = tasks
        self._wanted = wanted

    def _text(self, found: Sequence[Delta], cursor: int) -> bytes:
        if self._wanted.is_all:
            return self._feed.ring.joined(cursor)
        return b"".join([self._framed(delta) for delta in found if self._wanted.fits(delta)])

    async def _beginning(self) -> AsyncIterator[bytes]:
        since, upto = self._wanted.since, self._feed.seq
        if since is None:
            async for part in self._snapshot():
                yield part
            return
        if not await can_replay(self._tasks, since, upto):
            async for part in self._again("too_old", None):
                yield part
            return
        events = [event for event in await self._tasks.events(since, REPLAY_MOST + 1) if event.seq <= upto]
        async for delta in deltas(self._tasks, events):
            if self._wanted.fits(delta):
                yield self._framed(delta)

    async def _again(self, reason: str, missed: int | None) -> AsyncIterator[bytes]:
        self._wanted = self._wanted._replace(since=None)
        async for part in super()._again(reason, missed):
            yield part

    def _snapshot(self) -> AsyncIterator[bytes]:
        id = self._feed.seq if self._wanted.replay else None
        query, task, bounded = self._wanted.query, self._wanted.task_id, self._wanted.bounded
        building = self._feed.building
        return snapshot(self._tasks, query, task, bounded=bounded, id=id, building=building)

    def _framed(self, delta: Delta) -> bytes:
        return b"id: %d\n%s" % (delta.seq, delta.frame) if self._wanted.replay else delta.frame


class Streaming(Response):
    """Hands the connection to a stream."""

    def __init__(self, stream: FeedStream[Any]) -> None:
        super().__init__()
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._stream(scope, receive, send)


async def _leaving(receive: Receive, gone: asyncio.Future[None]) -> None:
    await wait_disconnect(receive)
    if not gone.done():
        gone.set_result(None)
