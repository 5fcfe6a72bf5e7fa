"""Meantime for code that is not async: the same objects, and every call waits for its answer.

An opened Meantime has one event loop in one daemon thread, and one Portal into it. There are no
twins: each class here takes its methods from the async class it stands for. Any thread may call.
A forked child must open a Meantime of its own; the parent's loop does not exist there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar, cast

from meantime import thread as async_thread
from meantime.app import meantime as app
from meantime.conversation import handle, log, loop, turn
from meantime.execution.containment import run_on
from meantime.kernel.errors import Closed, InvalidInput
from meantime.surfaces.http import http_door
from meantime.toolset import toolset

__all__ = [
    "Batch",
    "Handle",
    "HttpDoor",
    "Log",
    "Loop",
    "Meantime",
    "Thread",
    "Toolset",
    "Transcript",
    "Turn",
    "begin",
    "run_beside",
]

T = TypeVar("T")
GRACE = 1.0  # seconds for what still waits when the loop ends; work that ignores it is left behind
_END: Any = object()
_KINDS: dict[type, type[Proxy]] = {}  # async class -> its blocking one


class Portal:
    """The way into the loop's thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._closed = self._stopped = False
        self._ending: concurrent.futures.Future[None] | None = None
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="meantime-portal", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            run_on(self._loop.run_forever, lambda: self._stopped)
        finally:
            self._loop.close()

    def _stop(self) -> None:
        self._stopped = True
        self._loop.stop()

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Waits for the answer. An interrupt ends the wait, never the task that is waited for."""
        future = self.begin(coroutine)
        try:
            return self._answer(future)
        except BaseException:
            future.cancel()
            raise

    def finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Like `call`, but an interrupt leaves it going: half a clean-up would be worse than a late one."""
        return self._answer(self.begin(coroutine))

    def end(self, last: Coroutine[Any, Any, None]) -> None:
        """Runs `last`, lets go whoever still waits, and ends the loop. Ending twice is harmless."""
        self._check_place(last)
        with self._lock:
            if self._ending is None:
                self._ending = asyncio.run_coroutine_threadsafe(self._end(last), self._loop)
            else:
                last.close()
        try:
            self._ending.result()
        finally:
            if self._ending.done():  # else we were interrupted, and it goes on without us
                self._thread.join()

    async def _end(self, last: Coroutine[Any, Any, None]) -> None:
        try:
            await last
        finally:
            with self._lock:
                self._closed = True
            await asyncio.sleep(0)  # what came in just before becomes a task here, and is found below
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for waiting in left:
                waiting.cancel()
            if left:
                await asyncio.wait(left, timeout=GRACE)
            self._loop.call_soon(self._stop)

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Does not wait: the future has the answer. Cancelling it is what an interrupt is to `call`."""
        self._check_place(coroutine)
        with self._lock:  # nothing may slip in behind the end of the loop: nobody would answer it
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        coroutine.close()
        raise Closed

    def _answer(self, future: concurrent.futures.Future[T]) -> T:
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            if self._closed:
                raise Closed from None
            raise

    def _check_place(self, coroutine: Coroutine[Any, Any, object]) -> None:
        if threading.current_thread() is self._thread:  # by object: idents are used again
            coroutine.close()
            raise InvalidInput(
                "A blocking call from Meantime's own event loop would wait for itself for ever.",
                hint="In async work use the async Meantime, or hand off a sync function.",
            )
        if os.getpid() != self._pid:
            coroutine.close()
            raise InvalidInput(
                "This Meantime was opened before a fork.", hint="Open one of its own in the child."
            )


class Proxy:
    """Stands for one async object: its methods block, its async iterators are iterators, its async
    context managers are context managers. Its return value is wrapped likewise."""

    __slots__ = ("_portal", "_target")

    def __init_subclass__(cls, of: type) -> None:
        _KINDS[of] = cls
        cls.__doc__ = of.__doc__
        for name, member in vars(of).items():
            own = {"__aenter__": "__enter__", "__aexit__": "__exit__"}.get(name, name)
            if own.startswith("_") and own == name:
                continue
            if own not in vars(cls) and (found := _member(own, member)) is not None:
                setattr(cls, own, found)

    def __init__(self, portal: Portal, target: Any) -> None:
        self._portal = portal
        self._target = target

    def __getattr__(self, name: str) -> Any:
        """Plain attributes, such as `turn.notices`; methods and properties are on the class."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._target, name)

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"


def _member(name: str, member: Any) -> Any:
    """The blocking form of one member of an async class, or None where it needs none."""
    if isinstance(member, property):
        read = cast("Callable[[Any], Any]", member.fget)
        return property(lambda self: _wrap(self, read(self._target)), doc=member.__doc__)
    if not inspect.isfunction(member):
        return None

    @functools.wraps(member)
    def method(self: Proxy, /, *args: Any, **kwargs: Any) -> Any:
        portal, target = self._portal, self._target  # pyright: ignore[reportPrivateUsage]  the other half of Proxy
        given = [_unwrap(value) for value in args]
        named = {key: _unwrap(value) for key, value in kwargs.items()}
        wait = portal.finish if name == "__exit__" else portal.call
        return _wrap(self, wait(_invoke(functools.partial(member, target, *given, **named))))

    method.__name__ = name
    return method


def begin(method: Callable[..., T], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
    """Calls a method of a blocking object without waiting: `begin(thread.call, work).result()`.

    Cancelling the future ends the wait, as an interrupt would."""
    proxy, member = getattr(method, "__self__", None), getattr(method, "__wrapped__", None)
    if not isinstance(proxy, Proxy) or member is None:
        raise InvalidInput("begin(...) takes a method of a blocking object.", hint="Such as thread.call.")
    portal, target = proxy._portal, proxy._target  # pyright: ignore[reportPrivateUsage]  the other half of Proxy
    call = functools.partial(
        member, target, *map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()}
    )

    async def answer() -> T:
        return _wrap(proxy, await _invoke(call))

    return portal.begin(answer())


def run_beside(near: Any, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Runs a coroutine of yours on the event loop of a blocking object, and does not wait for it."""
    if not isinstance(near, Proxy):
        coroutine.close()
        raise InvalidInput("run_beside(...) takes a blocking object.", hint="Such as a thread.")
    return near._portal.begin(coroutine)  # pyright: ignore[reportPrivateUsage]  the other half of Proxy


async def _invoke(call: Callable[[], Any]) -> Any:
    """Plain functions are called here, too, on the loop: some of them need it to be running."""
    found = call()
    return await found if inspect.isawaitable(found) else found


def _wrap(near: Proxy, value: Any) -> Any:
    if value is near._target:  # pyright: ignore[reportPrivateUsage]  the other half of Proxy
        return near
    portal = near._portal  # pyright: ignore[reportPrivateUsage]
    kind = _KINDS.get(value.__class__)
    if kind is not None:
        return kind(portal, value)
    if isinstance(value, AsyncIterator):
        return Stream(near, cast("AsyncIterator[Any]", value))
    return value


def _unwrap(value: Any) -> Any:
    return value._target if isinstance(value, Proxy) else value  # pyright: ignore[reportPrivateUsage]


class Stream(Iterator[Any]):
    """An async iterator, for `for`. One that was interrupted is over; ask for a new one."""

    def __init__(self, near: Proxy, source: AsyncIterator[Any]) -> None:
        self._near = near
        self._portal = near._portal  # pyright: ignore[reportPrivateUsage]  the other half of Proxy
        self._source = source
        self._turn = threading.Lock()  # an async generator cannot be asked twice at once

    def __next__(self) -> Any:
        with self._turn:
            found = self._portal.call(self._step())
        if found is _END:
            raise StopIteration
        return _wrap(self._near, found)

    async def _step(self) -> Any:
        return await anext(self._source, _END)


class Meantime(Proxy, of=app.Meantime):
    """It is a context manager, too: leaving the block closes it."""

    def __init__(self, portal: Portal | None = None, target: Any = None) -> None:
        if portal is None:
            app.Meantime()  # says how to open one
            raise AssertionError
        super().__init__(portal, target)

    @classmethod
    def open(cls, *args: Any, **kwargs: Any) -> Meantime:
        return cls._enter(app.Meantime.open(*args, **kwargs))

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Meantime:
        return cls._enter(app.Meantime.connect(*args, **kwargs))

    @classmethod
    def _enter(cls, opening: app.Opening) -> Meantime:
        portal = Portal()
        try:
            return cls(portal, portal.call(_invoke(lambda: opening)))
        except BaseException:
            portal.end(_nothing())
            raise

    def close(self, *, on_close: str | None = None) -> None:
        """Stops what runs, records it, and ends the loop. Closing twice is harmless."""
        self._portal.end(self._target.close(on_close=on_close))

    def __enter__(self) -> Meantime:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


class Thread(Proxy, of=async_thread.Thread): ...


class Toolset(Proxy, of=toolset.Toolset): ...


class Turn(Proxy, of=turn.Turn): ...


class Handle(Proxy, of=handle.Handle): ...


class Batch(Proxy, of=async_thread.Batch): ...


class Transcript(Proxy, of=turn.Transcript): ...


class Log(Proxy, of=log.Log): ...


class Loop(Proxy, of=loop.Loop): ...


class HttpDoor(Proxy, of=http_door.HttpDoor): ...


async def _nothing() -> None:
    return None
