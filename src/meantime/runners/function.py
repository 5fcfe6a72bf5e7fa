"""Runs Python functions: async ones on the event loop, sync ones on a worker thread."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import inspect
import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from types import FunctionType
from typing import Any, cast

from meantime.execution.containment import contained, tasks_contained
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable, reprs_in
from meantime.ports.runner import Abilities, Assignment, Context

from .background_function import REGISTRY, BackgroundFunction

LOG = logging.getLogger("meantime")
MAX_LOGGED = 1_000
REPR_ONLY = (
    "The result of %s has a %s, which is not JSON: only its repr is kept. Return a dict, a dataclass or a "
    "Pydantic model instead."
)


class FunctionRunner:
    kind = "call"
    abilities = Abilities()

    def __init__(self, max_threads: int = 256) -> None:
        self._threads = Threads(max_threads)
        self._foreground = Threads(max_threads)
        self._logged: set[str] = set()  # types whose results were only a repr

    def check(self, task: Task, assignment: Assignment) -> None:
        target = assignment.target
        if target is None:
            raise InvalidInput("Call(...) needs a function.")
        if isinstance(target, BackgroundFunction):
            target.check(assignment.args, assignment.kwargs)
        else:
            check_arguments(target, assignment.args, assignment.kwargs)

    def can_run(self, task: Task) -> bool:
        """After a restart: the arguments must be what they were, and the function must be found."""
        return task.work.faithful and find(task.work.name) is not None

    async def exists(self, task: Task) -> bool:
        return False

    async def run(self, assignment: Assignment, context: Context) -> Report:
        target, args, kwargs = assignment.target, assignment.args, assignment.kwargs
        if target is None:
            target, args, kwargs = _stored(assignment.task)
        if is_async(target):
            with tasks_contained():
                result = await target(*args, **kwargs)
        else:
            threads = self._foreground if assignment.foreground else self._threads
            result = await _in_thread(threads, partial(target, *args, **kwargs), context)
            if inspect.isawaitable(result):  # a lambda around a coroutine function
                with tasks_contained():
                    result = await result
        value = jsonable(result)
        if context.noticed:  # it saw that it should stop, and returned: that is a stop
            return Report(stopped=True, partial=value.value)
        return Report(result=value, reprs=() if value.faithful else self._warned(result, assignment.task))

    def _warned(self, result: object, task: Task) -> tuple[str, ...]:
        """The types of which only the repr is kept. The log says it once for each type."""
        found = reprs_in(result)
        for name in found:
            if name not in self._logged and len(self._logged) < MAX_LOGGED:
                self._logged.add(name)
                LOG.warning(REPR_ONLY, task.title, name)
        return found


async def _in_thread(threads: Threads, call: Callable[[], Any], context: Context) -> Any:
    """A thread cannot be interrupted: a cancel sets `context.cancelled`, and we go on waiting."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    copied = contextvars.copy_context()

    def deliver(result: Any, problem: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((result, problem))

    def job() -> None:
        result, problem = None, None
        try:
            result = copied.run(call)
        except BaseException as raised:
            problem = raised
        try:
            loop.call_soon_threadsafe(deliver, result, problem)
        except RuntimeError:
            return  # the loop is closed: nobody waits for this any more

    context.on_thread = True
    threads.submit(job)
    try:
        result, problem = await _outlast(ended, context)
    finally:
        context.on_thread = False
    if problem is not None:
        raise problem  # here, in our own coroutine: a future refuses some of them
    return result


async def _outlast(ended: asyncio.Future[Any], context: Context) -> Any:
    me = asyncio.current_task()
    assert me is not None
    while True:
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            if ended.done() and not ended.cancelled():
                return ended.result()
            if me.cancelling() > context.stops:
                raise


def is_async(target: Callable[..., Any]) -> bool:
    while isinstance(target, partial):
        target = cast("partial[Any]", target).func
    if isinstance(target, BackgroundFunction):
        return is_async(cast("Callable[..., Any]", target.fn))
    code = getattr(target, "__code__", None)  # plain functions and methods, the common case, in one look
    if code is not None:
        return bool(code.co_flags & inspect.CO_COROUTINE)
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(type(target).__call__)


def _stored(task: Task) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    target = find(task.work.name)
    if target is None:
        raise LookupError(f"the function {task.work.name} cannot be found in this process")
    stored = cast("dict[str, Any]", task.work.input or {})
    return target, tuple(stored.get("args", ())), dict(stored.get("kwargs", {}))


def find(name: str) -> Callable[..., Any] | None:
    """A function by its stored name: registered with @background, or importable."""
    if name in REGISTRY:
        return REGISTRY[name]
    module, _, path = name.partition(":")
    if not path or "<" in path or module in ("__main__", "?"):
        return None
    try:
        with contained():
            found: Any = importlib.import_module(module)
            for part in path.split("."):
                found = getattr(found, part)
    except Exception:  # a module that does not import is a function that is not there
        return None
    return found if callable(found) else None


def check_arguments(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Where the function says what it takes; one of C may not. A decorator's own arguments count, not those
    of the function that it wraps."""
    if not kwargs and _takes(target, len(args)):
        return
    try:
        signature = inspect.signature(target, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        name = getattr(target, "__name__", type(target).__name__)
        raise InvalidInput(
            f"{name}{signature}: {problem}.", hint=f"Give its arguments to the Call: Call({name}, …)."
        ) from None


def _takes(target: Callable[..., Any], count: int) -> bool:
    """Quickly, for plain functions and positional arguments: a signature costs more than a start may."""
    if not isinstance(target, FunctionType) or target.__code__.co_kwonlyargcount:
        return False
    most = target.__code__.co_argcount
    return most - len(target.__defaults__ or ()) <= count <= most


class Threads:
    """Worker threads. Daemon threads: one that never ends cannot keep the process.

    They grow while nobody is idle, up to `most`; beyond that, jobs wait their turn.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, job: Callable[[], None]) -> None:
        """From the event loop only, so the count needs no lock. A job must not raise."""
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            name = f"meantime-{self._count + 1}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()  # or raises: no thread
            self._count += 1
        self._jobs.put(job)

    def _serve(self) -> None:
        while True:
            self._jobs.get()()
            self._idle.release()
