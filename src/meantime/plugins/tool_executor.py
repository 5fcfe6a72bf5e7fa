"""ToolExecutor: a tool's plain result if it is quick, otherwise a task in the background. Never both."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Any

from meantime.kernel.errors import NotFound
from meantime.kernel.estimates import alike
from meantime.kernel.model import Json
from meantime.ports.runner import CURRENT

from .background_mixin import check_arguments
from .call_context import CallContext
from .permission import Decision, Permission, check_permission, denied, kept
from .protocol import TaskHandle
from .registry import PluginRegistry, Tool
from .registry_state import new_id
from .runtime_call import RuntimeCall
from .task_answers import backgrounded, started
from .waited_call import Calling, FunctionCall, run_tool, settle
from .workers import Workers

logger = logging.getLogger("meantime")
# Of the call that runs here: what a tool starts on its part is asked for like a call of the agent's own.
_CALLING: ContextVar[ToolExecutor | None] = ContextVar("meantime_executor", default=None)


def calling_executor() -> ToolExecutor | None:
    return _CALLING.get()


@dataclass(frozen=True)
class InlineCall:
    """A call that somebody waits for now, and that `promote` can send to the background."""

    id: str
    plugin_name: str
    tool_name: str
    arguments: dict[str, Any]
    seconds: float  # so far


class ToolExecutor:
    """Any thread may call. Foreground calls have threads of their own, so that none of them waits
    behind background work.

    permission: is asked before anything runs, with the tool's name and arguments.
    """

    def __init__(self, registry: PluginRegistry, permission: Permission | None = None) -> None:
        self._registry = registry
        self._permission = permission
        self._workers = Workers()
        self._inline: dict[str, Calling] = {}

    @property
    def registry(self) -> PluginRegistry:
        return self._registry

    def execute(self, name: str, args: dict[str, Any]) -> Any:
        """The tool's result, or the dictionary that says under which id it goes on. The tool's exception is
        raised here; a TimeoutError of its own is its failure, and not "still running".
        """
        before = _CALLING.set(self)
        try:
            return self._execute(name, args)
        finally:
            _CALLING.reset(before)

    def _execute(self, name: str, args: dict[str, Any]) -> Any:
        tool = self._registry.tool(name)
        arguments = check_arguments(args)
        decision = check_permission(self._permission, name, arguments)
        if not decision.allowed:
            return {"error": denied(name, decision)}
        meta = self._meta(decision)
        ours = tool.ours
        if ours is not None and ours.asks_for_background(name, arguments):
            return started(ours, name, arguments, meta)
        threshold = self._registry.threshold(tool)
        call = self._call(tool, arguments, meta, threshold)
        if call is None:
            return self._run_here(tool, arguments)
        return self._answer(call, threshold)

    async def execute_async(self, name: str, args: dict[str, Any]) -> Any:
        """The same for async callers: their loop goes on. A caller that is cancelled leaves the call
        running; at its threshold it becomes a task like any other."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        answer: Future[Any] = Future()
        context = copy_context()

        def tell(_: object) -> None:
            try:
                loop.call_soon_threadsafe(lambda: ended.done() or ended.set_result(None))
            except RuntimeError:
                return  # the loop is closed: nobody waits any more

        answer.add_done_callback(tell)
        self._workers.submit(lambda: settle(answer, context.run, self.execute, name, args))
        await ended
        return answer.result()

    def start_background(
        self, name: str, arguments: dict[str, Any], timeout_seconds: float | None = None
    ) -> TaskHandle:
        """Starts a tool in the background on purpose, under the same permission as a call of it."""
        tool = self._registry.tool(name)
        decision = check_permission(self._permission, name, check_arguments(arguments))
        if not decision.allowed:
            raise PermissionError(denied(name, decision))
        if tool.ours is not None:
            return tool.ours.start_task(name, arguments, timeout_seconds, self._meta(decision))
        if tool.capable is None:
            raise ValueError(f"Plugin '{tool.plugin_name}' does not support background execution")
        with self._registry.workshop.place():
            return tool.capable.start_background(name, arguments, timeout_seconds)

    # -- by hand

    def calls(self) -> list[InlineCall]:
        """The calls that are waited for now, oldest first. Tools that never go to the background are not
        here.
        """
        return [
            InlineCall(call.id, call.tool.plugin_name, call.tool.name, call.arguments, call.elapsed)
            for call in list(self._inline.values())
        ]

    def promote(self, id: str) -> TaskHandle:
        """Sends a call that is waited for to the background, now: its caller gets the dictionary."""
        call = self._inline.get(id)
        if call is None:
            raise NotFound(f"No call {id!r} is waited for.", hint="calls() lists those that are.")
        return call.promote()

    # -- the steps of a call

    def _run_here(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        """On this thread, as it never becomes a task. `current()` works all the same; in background work it
        is that of the work."""
        if CURRENT.get(None) is not None:
            return run_tool(tool, arguments)
        before = CURRENT.set(CallContext(new_id(), self._registry.workshop.thread_id))
        try:
            return run_tool(tool, arguments)
        finally:
            CURRENT.reset(before)

    def _call(
        self, tool: Tool, arguments: dict[str, Any], meta: dict[str, Json], threshold: float | None
    ) -> Calling | None:
        """None: it is to run right here."""
        ours = tool.ours
        work = None if ours is None else ours.background_work(tool.name, arguments)
        if ours is not None and work is not None:
            return RuntimeCall(tool, ours, arguments, meta, work, threshold)
        if threshold is None and not tool.is_async:
            return None
        return FunctionCall(tool, arguments, meta, self._registry.workshop, self._workers)

    def _answer(self, call: Calling, threshold: float | None) -> Any:
        self._inline[call.id] = call
        try:
            call.begin()
            handed_off = self._wait(call, threshold)
        finally:
            del self._inline[call.id]
            call.end()
        if handed_off is not None:
            return handed_off
        result = call.result()
        if call.promoted is not None:
            return backgrounded(call.promoted, threshold, by_hand=True)
        self._registry.workshop.learn(call.tool.name, alike(call.arguments), call.elapsed)
        return result

    def _wait(self, call: Calling, threshold: float | None) -> dict[str, Any] | None:
        """Until it has ended, which is None, or is a task; this thread alone decides which."""
        patience = threshold
        try:
            while not call.wait(patience):
                by_hand = call.promotion_requested
                if not by_hand and (patience is None or call.elapsed < patience):
                    continue  # woken for nothing
                handle = self._hand_off(call)
                if handle is not None:
                    return backgrounded(handle, threshold, by_hand=by_hand)
                patience = None  # it goes on inline: until it ends, or somebody asks for it
        except BaseException:
            call.give_up()
            raise
        return None

    def _hand_off(self, call: Calling) -> TaskHandle | None:
        """None where it failed, or came too late: the call is still ours to wait for."""
        handle, problem = None, None
        if not call.future.done():
            try:
                handle = call.hand_off()
            except Exception as raised:
                problem = raised
                logger.info("A call of %s goes on in the foreground: %s", call.tool.name, problem)
        call.decided(handle, problem)
        return handle

    def _meta(self, decision: Decision) -> dict[str, Json]:
        return {} if self._permission is None else {"permission": kept(decision)}
