"""Turns, for a host in any language: lease, put into the conversation, acknowledge. Each ending is told
once, wherever the connection is cut: what was not acknowledged comes again under the same id, and an
acknowledgement that is sent again is answered as it was."""

from __future__ import annotations

import contextlib

from meantime.kernel.errors import Ambiguous, InvalidInput, NotFound
from meantime.kernel.notice_sources import SourceKind, parse_notice_id
from meantime.ports.tasks import Tasks
from meantime.surfaces.hooks.hook_delivery import Boundary

from .dependencies import Dependencies
from .notice_encoding import wire_notice
from .notice_schemas import Acknowledged, HookText, NewNotices, Unparked, WireTurn
from .routing import RequestContext
from .thread_requests import (
    MOST_ACKED,
    AckBody,
    BoundaryBody,
    EmptyBody,
    ReleaseBody,
    TellBody,
    TurnBody,
    UnparkBody,
)


async def open_turn(deps: Dependencies, asked: RequestContext[None, TurnBody]) -> WireTurn | None:
    turn = await deps.tasks.open_turn(asked.subject, lease=asked.body.lease, limit=asked.body.limit)
    if await asked.request.is_disconnected():
        # Nobody will ever know this turn's id: its notices need not wait for the end of the lease.
        await deps.tasks.close_turn(turn.id, failed=False)
        return None
    notices = [wire_notice(notice) for notice in turn.notices]
    return WireTurn(turn=turn.id, thread=asked.subject, notices=notices)


async def boundary(deps: Dependencies, asked: RequestContext[None, BoundaryBody]) -> NewNotices:
    fresh = await deps.tasks.boundary(asked.subject, limit=asked.body.limit, thread=asked.thread)
    return NewNotices(notices=[wire_notice(notice) for notice in fresh])


async def renew(deps: Dependencies, asked: RequestContext[None, EmptyBody]) -> None:
    await deps.tasks.renew(asked.subject, thread=asked.thread)


async def ack(deps: Dependencies, asked: RequestContext[None, AckBody]) -> Acknowledged:
    turn, body = asked.subject, asked.body
    if len(body.notices) + len(body.reads) > MOST_ACKED:
        raise InvalidInput(f"notices: at most {MOST_ACKED} at once.")
    for notice in body.reads:
        await _read(deps.tasks, turn, asked.thread, notice)
    settled = await deps.tasks.ack(turn, body.notices, (), body.reads, thread=asked.thread)
    return Acknowledged(told=tuple(settled.told))


async def _read(tasks: Tasks, turn: str, thread: str | None, notice: str) -> None:
    """An ending that the agent read by itself is leased to its turn, if that is still possible; otherwise
    it is told in a later one. Where the turn is over, the ack says so."""
    with contextlib.suppress(NotFound, Ambiguous, InvalidInput):
        told = parse_notice_id(notice)
        if told is None or told.kind is not SourceKind.ENDING:
            return
        task = await tasks.get(told.of, thread)
        if task.ended and (task.id, task.run.number) == (told.of, told.run):
            await tasks.output(task.id, thread, turn=turn)


async def release(deps: Dependencies, asked: RequestContext[None, ReleaseBody]) -> None:
    """A turn that is not open has been released already, or has run out."""
    await deps.tasks.close_turn(asked.subject, failed=asked.body.failed, thread=asked.thread)


async def unpark(deps: Dependencies, asked: RequestContext[None, UnparkBody]) -> Unparked:
    return Unparked(unparked=await deps.tasks.unpark(asked.subject, asked.body.notices))


async def tell(deps: Dependencies, asked: RequestContext[None, TellBody]) -> HookText:
    body = asked.body
    at = Boundary(asked.subject, body.moment, body.session, body.transcript, body.host)
    told = await deps.hooks.tell(at, body.timeout, asked.request.receive)
    return HookText(text=told.text, turn=told.turn or None, over=told.over)
