"""One call while somebody waits for it: on a thread of its own, or as a call of the runtime."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from meantime.blocking import run_beside
from meantime.kernel.errors import Closed, Refused
from meantime.kernel.model import Json
from meantime.ports.runner import CURRENT

from .call_context import CallContext
from .protocol import TaskHandle
from .registry import Tool
from .registry_state import Workshop, new_id
from .workers import Workers


class Calling(ABC):
    """`wait` returns when the call has ended, or when somebody asked for its promotion."""

    future: Future[Any]

    def __init__(self, tool: Tool, arguments: dict[str, Any], meta: dict[str, Json]) -> None:
        self.id = new_id()
        self.tool = tool
        self.arguments = arguments
        self.meta = meta
        self.began = time.monotonic()
        self._woken = threading.Lock()
        self._woken.acquire()
        self._deciding = threading.Lock()
        self._promotion: Future[TaskHandle] | None = None
        self._over = False
        self.promoted: TaskHandle | None = None  # by somebody else, through the runtime

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def wait(self, seconds: float | None) -> bool:
        """Whether it has ended; at the latest when it has run for so many seconds."""
        left = -1.0 if seconds is None else max(0.0, min(seconds - self.elapsed, threading.TIMEOUT_MAX))
        self._woken.acquire(timeout=left)
        return self.future.done()

    def wake(self, _: object = None) -> None:
        try:
            self._woken.release()
        except RuntimeError:
            return  # awake already

    # -- by hand: somebody asks, and who waits for the call does it, so that there is one answer

    @property
    def promotion_requested(self) -> bool:
        return self._promotion is not None

    def promote(self) -> TaskHandle:
        with self._deciding:
            if self._over:
                raise _ended(self.id)
            if self._promotion is None:
                self._promotion = Future()
            promotion = self._promotion
        self.wake()
        return promotion.result()

    def decided(self, handle: TaskHandle | None, problem: BaseException | None = None) -> None:
        """Ends a hand-off: the caller that asked for it is told the result, and may ask again."""
        with self._deciding:
            promotion, self._promotion = self._promotion, None
        if promotion is not None and handle is not None:
            promotion.set_result(handle)
        elif promotion is not None:
            promotion.set_exception(problem or _ended(self.id))

    def end(self) -> None:
        with self._deciding:
            self._over = True
        self.decided(None)

    @abstractmethod
    def begin(self) -> None:
        """Starts the tool; from here on it runs."""

    @abstractmethod
    def hand_off(self) -> TaskHandle:
        """Makes the running call a task. If this raises, the call goes on as it was."""

    @abstractmethod
    def result(self) -> Any:
        """The caller's result; the tool's own exception is raised."""

    @abstractmethod
    def give_up(self) -> None:
        """The caller was interrupted and will not get the answer."""


class FunctionCall(Calling):
    """A Python function: a sync one on a worker thread, an async one on the runtime's loop. It costs
    one switch of threads and back."""

    def __init__(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        meta: dict[str, Json],
        workshop: Workshop,
        workers: Workers,
    ) -> None:
        super().__init__(tool, arguments, meta)
        self._workers = workers
        self._workshop = workshop
        self._context = CallContext(self.id, workshop.thread_id)
        self.future = OnLoop() if tool.is_async else Future()

    def begin(self) -> None:
        self.future.set_running_or_notify_cancel()
        self.future.add_done_callback(self.wake)
        if isinstance(self.future, OnLoop):
            run_beside(
                self._workshop.thread, self.future.perform(self._context, self.tool.run, self.arguments)
            )
            return
        context = copy_context()
        context.run(CURRENT.set, self._context)

        def job() -> None:
            settle(self.future, context.run, run_tool, self.tool, self.arguments)

        try:
            self._workers.submit(job)
        except RuntimeError:
            job()  # the system has no thread left to give: plainly, here

    def hand_off(self) -> TaskHandle:
        tool, ours = self.tool, self.tool.ours
        if ours is not None:
            return ours.adopt_task(
                self.future,
                tool.name,
                self.arguments,
                id=self.id,
                running_for=self.elapsed,
                meta=self.meta,
                linked=self._context.attach,
            )
        with self._workshop.place(self.id):
            handle: Any = tool.plugin.register_running_task(self.future, tool.name, self.arguments)
        if not isinstance(getattr(handle, "task_id", None), str):
            raise RuntimeError(f"register_running_task of plugin {tool.plugin_name!r} gave no TaskHandle.")
        return handle

    def result(self) -> Any:
        return self.future.result()

    def give_up(self) -> None:
        """A thread cannot be interrupted: it goes on, and nobody waits for it."""
        self.future.cancel()


class OnLoop(Future[Any]):
    """An async tool on the runtime's loop. Unlike a thread it can be interrupted, also once it runs;
    what it does with that decides."""

    _performing: asyncio.Task[Any] | None = None
    _asked = False

    async def perform(self, link: CallContext, run: Callable[..., Any], arguments: dict[str, Any]) -> None:
        self._performing = me = asyncio.current_task()
        CURRENT.set(link)
        try:
            result = await run(arguments)
        except BaseException as problem:  # ours to pass on: here it would end the loop
            with_the_loop = not self._asked and me is not None and me.cancelling() > 0
            self.set_exception(Closed() if with_the_loop else problem)
        else:
            self.set_result(result)

    def cancel(self) -> bool:
        if self._performing is not None and not self.done():
            self._asked = True
            with suppress(RuntimeError):  # the loop is closed, and the tool with it
                self._performing.get_loop().call_soon_threadsafe(self._performing.cancel)
        return False


def run_tool(tool: Tool, arguments: dict[str, Any]) -> Any:
    """Here, on this thread; what is async gets a loop of its own."""
    result = tool.run(arguments)
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Any) -> Any:
    return await result


def settle(future: Future[Any], run: Callable[..., Any], *args: Any) -> None:
    try:
        result = run(*args)
    except BaseException as problem:  # SystemExit, too: it belongs to whoever called
        future.set_exception(problem)
    else:
        future.set_result(result)


def _ended(id: str) -> Refused:
    return Refused(
        f"The call {id} has ended; there is nothing to send to the background.",
        code="already_ended",
        hint="Its caller has its answer.",
    )
