"""GET /v1/events?format=patches: rows for a page. A bounded snapshot, then batches of changed rows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from starlette.responses import Response

from meantime.kernel.model import Task
from meantime.ports.search_filter import fits
from meantime.ports.store import Query

from .dependencies import Dependencies
from .event_stream import REPLAY_MOST, FeedStream, Streaming, can_replay, last_event, stream_tasks
from .patch_feed import encoded_rows
from .responses import encode
from .routing import RequestContext
from .row_encoding import wire_overview
from .row_patch import Patch, patch_frame
from .snapshot import BOUNDED
from .task_lookup import scope, searched
from .thread_requests import EventFilter

HEARTBEAT = 10.0  # seconds of silence: a page says soon that it is disconnected


async def stream_events(deps: Dependencies, asked: RequestContext[EventFilter, None]) -> Response:
    """In the format that the client asks for."""
    given = asked.params
    if given.format != "patches":
        return await stream_tasks(deps, asked)
    query = Query(scope(given.thread, asked.thread), batch=given.batch)
    query = searched(query, given.q, deps.clock.now())
    await deps.patches.join()
    return Streaming(PatchStream(deps, query, asked.thread, last_event(asked.request)))


class PatchStream(FeedStream[Patch]):
    def __init__(self, deps: Dependencies, query: Query, scope: str | None, since: int | None) -> None:
        """`scope` is the thread of a token that may see no other."""
        super().__init__(deps.patches, deps.clock, min(HEARTBEAT, deps.settings.heartbeat))
        self._tasks = deps.tasks
        self._patches = deps.patches
        self._query = query
        self._scope = scope
        self._since = since

    @property
    def _is_all(self) -> bool:
        return self._scope is None and self._query == Query()

    def _fits(self, task: Task) -> bool:
        return fits(self._query, task)

    def _text(self, found: Sequence[Patch], cursor: int) -> bytes:
        if self._is_all:
            return self._feed.ring.joined(cursor)
        return b"".join([patch.part(self._scope, self._fits) for patch in found])

    async def _beginning(self) -> AsyncIterator[bytes]:
        since, upto = self._since, self._feed.seq
        if since is None:
            async for part in self._snapshot():
                yield part
        elif await can_replay(self._tasks, since, upto):
            yield await self._missed(since, upto)
        else:
            async for part in self._again("too_old", None):
                yield part

    async def _missed(self, since: int, upto: int) -> bytes:
        """The tasks that changed, as they are now; and the newest, whose delivery is not in the journal."""
        events = [event for event in await self._tasks.events(since, REPLAY_MOST + 1) if event.seq <= upto]
        changed = {event.task_id: event.thread for event in events}
        rows, gone = await encoded_rows(self._tasks, changed)
        _, newest = await self._patches.snapshot(self._query)
        rows += [row for row in newest[:BOUNDED] if row.task.id not in changed]
        patch = Patch.of(upto, rows, gone, await self._overview())
        return patch.part(self._scope, self._fits) or patch_frame(upto, [], [], b"")

    async def _overview(self) -> bytes:
        return encode(wire_overview(await self._tasks.overview(self._scope)))

    async def _snapshot(self) -> AsyncIterator[bytes]:
        seq, rows = await self._patches.snapshot(self._query)
        text = b",".join([row.text for row in rows])
        yield b'id: %d\nevent: snapshot\ndata: {"rows":[' % seq
        if text:
            yield text
        overview = await self._overview()
        yield b'],"overview":%b,"seq":%d,"bounded":true}\n\n' % (overview, seq)
