"""A future that runs already, as work: to perform it is to wait for it, and to stop it is to ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import msgspec

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Json, Work
from meantime.kernel.payloads import as_text, jsonable, short
from meantime.kernel.plain_text import is_unicode, plain
from meantime.kernel.work import MAX_INPUT, Order

from .runner import Context, current

MAX_NAME = 500


class Adopted:
    """The work of `thread.adopt`. Nothing here executes anything, and no restart can find it again."""

    def __init__(
        self,
        future: Future[Any] | asyncio.Future[Any],
        name: str,
        arguments: Json = None,
        linked: Callable[[Context], object] | None = None,
    ) -> None:
        self._name = plain(name) if isinstance(name, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]  it comes from outside
        if not 0 < len(self._name) <= MAX_NAME or not is_unicode(self._name):
            raise InvalidInput(f"name must be a text of 1 to {MAX_NAME} characters.")
        self._future = _check(future)
        self._arguments = arguments
        self._linked = linked

    def order(self) -> Order:
        stored = jsonable(self._arguments).value
        if stored is not None and len(msgspec.json.encode(stored)) > MAX_INPUT:
            stored = {"too_big": short(as_text(stored))}
        return Order(Work("call", self._name, stored, faithful=False), self.wait)

    async def wait(self) -> Any:
        """Its result, or its exception, here. A stop asks the future to cancel itself; one that will
        not is waited for all the same, and what it says then comes late."""
        future, context = self._future, current()
        if self._linked is not None:
            with suppress(Exception):  # the future runs, whatever becomes of its link to us
                self._linked(context)
        ended = _ended(future)
        me = asyncio.current_task()
        assert me is not None
        while not ended.done():
            try:
                await asyncio.shield(ended)
            except asyncio.CancelledError:
                if me.cancelling() > context.stops:
                    raise  # not a stop of ours: this loop is coming down
                future.cancel()
        if future.cancelled():
            raise asyncio.CancelledError
        problem = future.exception()
        if problem is not None:
            raise problem
        return future.result()


def _ended(future: Future[Any] | asyncio.Future[Any]) -> asyncio.Future[None]:
    """Resolves on this loop, whichever thread the future ends on."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def tell(_: object) -> None:
        try:
            loop.call_soon_threadsafe(lambda: ended.done() or ended.set_result(None))
        except RuntimeError:
            return  # the loop is closed: nobody waits for this any more

    future.add_done_callback(tell)
    return ended


def _check(future: Any) -> Future[Any] | asyncio.Future[Any]:
    if isinstance(future, Future):
        return future  # pyright: ignore[reportUnknownVariableType]  of whatever it is of
    if not isinstance(future, asyncio.Future):
        raise InvalidInput(
            f"adopt takes a future that is running, not {type(future).__name__}.",
            hint="Hand a function over with start(Call(fn, …)); a coroutine, with asyncio.ensure_future.",
        )
    if future.get_loop() is not asyncio.get_running_loop():  # pyright: ignore[reportUnknownMemberType]
        raise InvalidInput(
            "This asyncio future belongs to another event loop.",
            hint="asyncio.run_coroutine_threadsafe gives one that can be adopted from anywhere.",
        )
    return future  # pyright: ignore[reportUnknownVariableType]
