"""Unrequested messages to a client: that its inbox or a task has changed. By the newer protocol it asks for a
stream of that; by the older ones it subscribes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from meantime.kernel.errors import MeantimeError

from . import mcp_tasks, resources
from .client_conversation import ClientConversation
from .task_methods import declares

Context = ServerRequestContext[Any, Any]
MOST = 100  # resources and tasks of one client
MOST_STREAMS = 256
BACKLOG = 100  # what a client that takes nothing can have waiting: what is newer says the same


class SubscriptionMessage:
    """A notification as it goes over the wire, with fields that the SDK does not know."""

    def __init__(self, method: str, params: dict[str, Any]) -> None:
        self._content = {"method": method, "params": params}

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._content


class Subscriptions:
    def __init__(self, conversation: Callable[[Context], Awaitable[ClientConversation]]) -> None:
        self._conversation = conversation
        self._streams = 0
        self._subscribed: dict[tuple[int, str], asyncio.Task[None]] = {}

    # -- the newer protocol: a stream

    async def listen(self, ctx: Context, params: Any) -> types.SubscriptionsListenResult:
        if self._streams >= MOST_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, f"{MOST_STREAMS} streams are open already.")
        self._streams += 1
        try:
            await self._stream(ctx)
        finally:
            self._streams -= 1
        return types.SubscriptionsListenResult(_meta=_meta(ctx))

    async def _stream(self, ctx: Context) -> None:
        conversation = await self._conversation(ctx)
        wanted: Any = (ctx.params or {}).get("notifications") or {}
        uris = _texts(wanted.get("resourceSubscriptions"))
        ids = [id for id in _texts(wanted.get("taskIds")) if await self._is_known(ctx, conversation, id)]
        queue: asyncio.Queue[SubscriptionMessage] = asyncio.Queue(BACKLOG)
        honoured = {"resourceSubscriptions": uris, "taskIds": ids}
        filtered = {name: value for name, value in honoured.items() if value}
        acknowledged = {"notifications": filtered, "_meta": _meta(ctx)}
        watching = [asyncio.ensure_future(_put(queue, self._updates(ctx, conversation, uri))) for uri in uris]
        watching += [asyncio.ensure_future(_put(queue, self._states(ctx, conversation, id))) for id in ids]
        try:
            await _say(ctx, SubscriptionMessage("notifications/subscriptions/acknowledged", acknowledged))
            while True:
                await _say(ctx, await queue.get())
        finally:
            for one in watching:
                one.cancel()

    async def _is_known(self, ctx: Context, conversation: ClientConversation, id: str) -> bool:
        """Unknown subscriptions are not honoured; the acknowledgement leaves them out."""
        if not declares(ctx):
            return False
        with suppress(MeantimeError):
            return bool(await conversation.task(id))
        return False

    async def _states(
        self, ctx: Context, conversation: ClientConversation, id: str
    ) -> AsyncGenerator[SubscriptionMessage]:
        async for task in conversation.changes(id):
            found = await mcp_tasks.whole_state(conversation.tasks, task)
            yield SubscriptionMessage("notifications/tasks", {**found, "_meta": _meta(ctx)})

    async def _updates(
        self, ctx: Context, conversation: ClientConversation, uri: str
    ) -> AsyncGenerator[SubscriptionMessage]:
        async for _ in _changes(conversation, uri):
            yield SubscriptionMessage("notifications/resources/updated", {"uri": uri, "_meta": _meta(ctx)})

    # -- the older ones: a subscription, on the connection itself

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        conversation, uri = await self._conversation(ctx), str(params.uri)
        connection: Any = getattr(ctx.session, "_connection")  # noqa: B009  the SDK gives no other way to it
        if len(self._subscribed) >= MOST * MOST_STREAMS:
            raise MCPError(types.INTERNAL_ERROR, "There are too many subscriptions.")
        key = (id(connection), uri)
        if key not in self._subscribed:
            self._subscribed[key] = asyncio.ensure_future(self._update(ctx, conversation, uri))
            connection.exit_stack.callback(self._drop, key)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._drop((id(getattr(ctx.session, "_connection")), str(params.uri)))  # noqa: B009
        return types.EmptyResult()

    async def _update(self, ctx: Context, conversation: ClientConversation, uri: str) -> None:
        with suppress(MeantimeError):
            async for _ in _changes(conversation, uri):
                await ctx.session.send_resource_updated(uri)

    def _drop(self, key: tuple[int, str]) -> None:
        watching = self._subscribed.pop(key, None)
        if watching is not None:
            watching.cancel()


async def _changes(conversation: ClientConversation, uri: str) -> AsyncGenerator[None]:
    """Also once at the beginning, where there is something: it may have come before anybody listened."""
    if uri != resources.INBOX:
        first = True
        async for _ in conversation.changes(resources.id_of(uri)):
            if not first:
                yield
            first = False
        return
    known: list[str] = []
    async for _ in conversation.wakes():
        unread = [notice.id for notice in await conversation.unread()]
        if unread != known:
            known = unread
            yield


async def _put(queue: asyncio.Queue[SubscriptionMessage], said: AsyncGenerator[SubscriptionMessage]) -> None:
    with suppress(MeantimeError):  # what is gone does not change any more
        async for one in said:
            await queue.put(one)


async def _say(ctx: Context, saying: SubscriptionMessage) -> None:
    await ctx.session.send_notification(cast("Any", saying), related_request_id=ctx.request_id)


def _meta(ctx: Context) -> dict[str, Any]:
    return {SUBSCRIPTION_ID_META_KEY: ctx.request_id}


def _texts(given: object) -> list[str]:
    found = cast("Iterable[object]", given) if isinstance(given, list) else ()
    return list(dict.fromkeys(one for one in found if isinstance(one, str)))[:MOST]
