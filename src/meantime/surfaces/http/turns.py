"""Turns, for a host in any language: lease, put into the conversation, acknowledge. Each ending is told
once, wherever the connection is cut: what was not acknowledged comes again under the same id, and an
acknowledgement that is sent again is answered as it was."""

from __future__ import annotations

import contextlib

from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.errors import Ambiguous, InvalidInput, NotFound
from meantime.kernel.notices import notice_id
from meantime.ports.tasks import OpenTurn

from . import answers, asking
from .body import Body
from .endpoint import Table, thread_of
from .parts import Parts
from .wire_notices import wire_notice

LEASE, LONGEST = 60.0, 3_600.0  # seconds: a lease is never without end, for a client may vanish
MOST = 100  # notices of one turn
MOST_ACKED = 1_000


class TurnBody(Body):
    lease: float = LEASE
    limit: int = MOST


class BoundaryBody(Body):
    limit: int = MOST


class AckBody(Body):
    notices: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


class ReleaseBody(Body):
    failed: bool = False


class EmptyBody(Body):
    pass


class Turns:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = parts.tasks

    def table(self) -> Table:
        return {
            "POST /v1/threads/{id}/turns": self.open,
            "POST /v1/threads/{id}/unpark": self.unpark,
            "POST /v1/turns/{turn}/boundary": self.boundary,
            "POST /v1/turns/{turn}/renew": self.renew,
            "POST /v1/turns/{turn}/ack": self.ack,
            "POST /v1/turns/{turn}/release": self.release,
        }

    async def open(self, request: Request) -> Response:
        thread = asking.own_thread(request.path_params["id"], thread_of(request))
        body = await self._parts.body(request, TurnBody)
        if not 0 < body.lease <= LONGEST:
            raise InvalidInput(f"lease: a turn is leased for up to {LONGEST:g} seconds.")
        turn = await self._tasks.open_turn(thread, lease=body.lease, limit=_limit(body.limit))
        if await request.is_disconnected():
            return await self._unheard(turn)
        notices = [wire_notice(notice) for notice in turn.notices]
        return answers.json({"turn": turn.id, "thread": thread, "notices": notices}, 201)

    async def _unheard(self, turn: OpenTurn) -> Response:
        """Nobody will ever know this turn's id: its notices need not wait for the end of the lease."""
        await self._tasks.close_turn(turn.id, failed=False)
        return Response(status_code=204)

    async def boundary(self, request: Request) -> Response:
        body = await self._parts.body(request, BoundaryBody)
        fresh = await self._tasks.boundary(
            request.path_params["turn"], limit=_limit(body.limit), thread=thread_of(request)
        )
        return answers.json({"notices": [wire_notice(notice) for notice in fresh]})

    async def renew(self, request: Request) -> Response:
        await self._parts.body(request, EmptyBody)
        await self._tasks.renew(request.path_params["turn"], thread=thread_of(request))
        return Response(status_code=204)

    async def ack(self, request: Request) -> Response:
        body = await self._parts.body(request, AckBody)
        turn, thread = request.path_params["turn"], thread_of(request)
        if len(body.notices) + len(body.reads) > MOST_ACKED:
            raise InvalidInput(f"notices: at most {MOST_ACKED} at once.")
        for notice in body.reads:
            await self._read(turn, thread, notice)
        settled = await self._tasks.ack(turn, body.notices, (), body.reads, thread=thread)
        return answers.json({"told": settled.told})

    async def _read(self, turn: str, thread: str | None, notice: str) -> None:
        """An ending that the agent read by itself is leased to its turn, if that is still possible; else
        it is told in a later one. Where the turn is over, the ack says so."""
        with contextlib.suppress(NotFound, Ambiguous, InvalidInput):
            task = await self._tasks.get(notice.rpartition(".")[0], thread)
            if task.ended and notice_id(task.id, task.run.number) == notice:
                await self._tasks.output(task.id, thread, turn=turn)

    async def release(self, request: Request) -> Response:
        """One that is not open has been released already, or has run out."""
        body = await self._parts.body(request, ReleaseBody)
        turn = request.path_params["turn"]
        await self._tasks.close_turn(turn, failed=body.failed, thread=thread_of(request))
        return Response(status_code=204)

    async def unpark(self, request: Request) -> Response:
        thread = asking.own_thread(request.path_params["id"], thread_of(request))
        await self._parts.body(request, EmptyBody)
        return answers.json({"unparked": await self._tasks.unpark(thread)})


def _limit(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise InvalidInput(f"limit: from 1 to {MOST} notices at once.")
    return limit
