"""A user's work must not end the process that runs it. `sys.exit()`, a KeyboardInterrupt of its own or any
other BaseException ends its run, and nothing else. A real Ctrl+C still stops the program.

asyncio lets SystemExit and KeyboardInterrupt of any task out of the event loop, and so ends it. They are
stopped where work is called (`contained`), in tasks that the work, or a library for it, makes meanwhile (the
same), and, where the loop is ours, at the loop (`run_on`).
"""

from __future__ import annotations

import asyncio
import dis
import functools
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, TracebackType
from typing import Any, TypeVar, cast

LOG = logging.getLogger("meantime")
T = TypeVar("T")
MOST = 3  # exceptions of a group that are named
_RAISE = dis.opmap["RAISE_VARARGS"]
_inside: ContextVar[bool] = ContextVar("meantime_contained", default=False)


class Escape(Exception):
    """Work raised what would have ended the process."""

    def __init__(self, problem: BaseException) -> None:
        super().__init__(words(problem))


def words(problem: BaseException) -> str:
    """The exception, as an error shows it."""
    try:
        text = str(problem)
    except BaseException:  # it is a stranger's
        text = "(its message could not be read)"
    name = type(problem).__name__
    if isinstance(problem, Escape):
        return text
    if isinstance(problem, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", problem)
        return f"{name}: {'; '.join(map(words, group.exceptions[:MOST]))}"
    if isinstance(problem, SystemExit | KeyboardInterrupt):
        return f"{name}{f': {text}' if text else ''} (work cannot end the process that runs it)"
    return f"{name}: {text}" if text else name


def is_ours_to_keep(problem: BaseException) -> bool:
    """Whether it has to go on up: a real Ctrl+C, or asyncio's own ways to end a coroutine."""
    if isinstance(problem, asyncio.CancelledError | GeneratorExit):
        return True
    return isinstance(problem, KeyboardInterrupt) and _is_interrupt(problem)


def is_raisable(problem: BaseException) -> bool:
    """Whether a caller of the work may be given it as it is. Otherwise it would end the caller's loop."""
    return isinstance(problem, Exception | asyncio.CancelledError)


@contextmanager
def contained() -> Generator[None]:
    """Around a call of a user's code, or an await of it. An exception that would end the process becomes an
    Escape, even in the tasks that are made meanwhile.
    """
    try:
        with tasks_contained():
            yield
    except Exception:
        raise
    except BaseException as problem:
        if is_ours_to_keep(problem):
            raise
        raise Escape(problem) from problem


# -- a real Ctrl+C


def _is_interrupt(problem: KeyboardInterrupt) -> bool:
    """The handler of the signal has raised it: one in Python is among its frames; Python's own is not, and
    raises between any two instructions. Work that raises it itself does that with a `raise`."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    frames = list(_frames(problem.__traceback__))
    if (code := _code_of(handler)) is not None:
        return any(trace.tb_frame.f_code is code for trace in frames)
    if handler is not signal.default_int_handler or not frames:
        return False
    last = frames[-1]
    return last.tb_frame.f_code.co_code[last.tb_lasti] != _RAISE


def _frames(trace: TracebackType | None) -> Generator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _code_of(handler: object) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = cast("functools.partial[Any]", handler).func
    return getattr(getattr(handler, "__func__", handler), "__code__", None)


# -- tasks that work makes, or a library for it


class tasks_contained:  # used like a function, on every call of one
    """Only for tasks that are made meanwhile."""

    __slots__ = ("_factory", "_loop", "_token")

    def __enter__(self) -> None:
        loop = asyncio._get_running_loop()  # pyright: ignore[reportPrivateUsage]  None in a thread of its own
        self._loop = loop
        if loop is not None:
            self._factory = _Factory.on(loop)
            self._token = _inside.set(True)

    def __exit__(self, *problem: object) -> None:
        if self._loop is not None:
            self._factory.let_go(self._loop)
            try:  # noqa: SIM105  every call of a function comes by here, and `suppress` takes longer than all else
                _inside.reset(self._token)
            except ValueError:
                pass  # a coroutine that nobody ends is closed in another context


class _Factory:
    """The loop's task factory while work runs on it: tasks that work makes are contained, others are not."""

    def __init__(self, before: Any) -> None:
        self._before = before
        self._users = 0

    @classmethod
    def on(cls, loop: asyncio.AbstractEventLoop) -> _Factory:
        found: Any = loop.get_task_factory()
        if type(found) is not cls:
            found = cls(found)
            loop.set_task_factory(found)
        found._users += 1
        return found

    def let_go(self, loop: asyncio.AbstractEventLoop) -> None:
        self._users -= 1
        if self._users == 0 and cast("Any", loop.get_task_factory()) is self:
            loop.set_task_factory(self._before)

    def __call__(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        if _inside.get() and isinstance(coroutine, Coroutine):
            coroutine = _Contained(cast("Coroutine[Any, Any, Any]", coroutine))
        if self._before is not None:
            return self._before(loop, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)


class _Contained(Coroutine[Any, Any, Any]):
    """A coroutine, but for how it ends. Not an async function around it: one that is cancelled before it
    begins would leave the inner one unawaited."""

    def __init__(self, inner: Coroutine[Any, Any, Any]) -> None:
        self._inner = inner

    def send(self, value: Any) -> Any:
        return self._step(self._inner.send, value)

    def throw(self, *problem: Any) -> Any:
        return self._step(self._inner.throw, *problem)

    def close(self) -> None:
        self._inner.close()

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        try:
            return step(*args)
        except (SystemExit, KeyboardInterrupt) as problem:
            if is_ours_to_keep(problem):
                raise
            raise Escape(problem) from problem

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def __getattr__(self, name: str) -> Any:
        """Attributes for a debugger: its frame, its name."""
        return getattr(self._inner, name)


# -- loops of our own


def run_on(run: Callable[[], T], is_over: Callable[[], bool]) -> T:
    """Runs a loop that is ours, and goes on with it after an escape: the task that raised it has ended, and
    nothing else has. `run` is called again until it returns, or `is_over`."""
    while True:
        try:
            return run()
        except (SystemExit, KeyboardInterrupt) as problem:
            if is_over():
                raise
            LOG.error("Work tried to end this process; it goes on: %s", words(problem))
