"""The context of running work: what it can report and see. Any thread may call it; it never waits."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from msgspec.structs import replace

from meantime.kernel.argument_checks import as_number, check_words, shown
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.ids import check_id
from meantime.kernel.model import Json, Progress, Task
from meantime.kernel.payloads import jsonable, short
from meantime.kernel.questions import Question, Reply
from meantime.ports.runner import Stopped

LOOK = 0.5  # seconds after a stop in which a sync function may first ask whether it should stop
MAX_EMITTED = 100  # named values of one run
MAX_TEXT = 500
LAST_TOOLS = 5
MAX_TOOLS = 100  # distinct names that are counted
_NO_VALUES: dict[str, Json] = {}
_NO_PROGRESS = Progress()


NO_TASK = "Nobody follows this run in the background."
UNFOLLOWED = "A call that somebody waits for is answered by its result."


class OwnerPort(Protocol):
    """Where questions go, and what the thread is told before the end."""

    def ask(self, question: Question) -> Awaitable[Reply]: ...

    def withdraw(self, question: str, reply: Reply | None) -> None: ...

    async def notify(self, text: str) -> str: ...


class LedgerPort(OwnerPort, Protocol):
    """The same in the process that has the ledger."""

    async def notify_once(self, number: int, text: str) -> str: ...


class WorkContext:
    """One per run. Its values are flushed to the ledger now and then, and always with the ending."""

    __slots__ = (
        "_aged",
        "_asks",
        "_changed",
        "_looked",
        "_loop",
        "_now",
        "_stopping",
        "agent",
        "children",
        "depth",
        "emitted",
        "noticed",
        "on_deaf",
        "on_thread",
        "said",
        "session",
        "stops",
        "task_id",
        "thread",
        "warned",
    )

    def __init__(
        self,
        task: Task,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float],
        changed: Callable[[str, bool], object],
        asks: OwnerPort | None = None,
        aged: Callable[[str, float], object] = lambda id, seconds: None,
    ) -> None:
        self.task_id = task.id
        self.thread = task.thread
        self.depth = task.depth
        self.agent = task.nearest_agent
        self.children = task.children
        self._asks = asks
        self.said: Progress | None = None
        self.emitted = _NO_VALUES
        self.noticed = False
        self.on_thread = self._looked = False
        self.on_deaf: Callable[[], object] | None = None  # who waits to hear that it will not stop
        self.warned = 0  # times, since it was last told to those who watch
        self.stops = 0
        self.session = task.session
        self._stopping = False
        self._loop = loop
        self._now = now
        self._changed = changed
        self._aged = aged

    @property
    def is_deaf(self) -> bool:
        """Whether it runs on a thread and never asked if it should stop: it will not notice a stop."""
        return self.on_thread and not self._looked

    @property
    def cancelled(self) -> bool:
        self._looked = True
        if self._stopping:
            self.noticed = True
        return self._stopping

    def check(self) -> None:
        if self.cancelled:
            raise Stopped("This run was asked to stop.")

    def request_stop(self) -> None:
        """The owner's side; not part of what work may call."""
        self._stopping = True

    def count_stop(self) -> None:
        self.stops += 1

    def progress(
        self,
        percent: float | None = None,
        message: str | None = None,
        *,
        phase: str | None = None,
        tool: str | None = None,
    ) -> None:
        was = self.said or _NO_PROGRESS
        calls, last = was.tool_calls, was.last_tools
        if tool is not None:
            tool = _short(tool)
            if tool not in calls and len(calls) >= MAX_TOOLS:
                tool = "other"
            calls = {**calls, tool: calls.get(tool, 0) + 1}
            last = (*last, tool)[-LAST_TOOLS:]
        self.said = Progress(
            percent=was.percent if percent is None else _percent(percent),
            phase=was.phase if phase is None else _short(phase),
            message=was.message if message is None else _short(message),
            tool_calls=calls,
            last_tools=last,
            updated_at=self._now(),
            turns=was.turns,
            tokens=was.tokens,
            cost=was.cost,
        )
        self._say()

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        was = self.said or _NO_PROGRESS
        self.said = replace(
            was,
            turns=was.turns + turns,
            tokens=was.tokens + tokens,
            cost=was.cost + cost,
            updated_at=self._now(),
        )
        self._say()

    def limit_children(self, depth: int) -> None:
        if depth >= 0:
            self.children = depth if self.children < 0 else min(self.children, depth)

    async def ask(self, question: Question) -> Reply:
        if self._asks is None:
            raise Refused(
                "This work has nobody to ask.",
                code="cannot_ask",
                hint="Only background work can, in the process that runs it.",
            )
        return await self._asks.ask(question)

    async def notify(self, text: str) -> str:
        if self._asks is None:
            raise Refused(
                "This work has no conversation to tell.",
                code="cannot_notify",
                hint="Only background work has, in the process that runs it.",
            )
        running = asyncio.get_running_loop()
        if running is self._loop:
            return await self._asks.notify(text)
        sent = asyncio.run_coroutine_threadsafe(self._asks.notify(text), self._loop)
        return await asyncio.wrap_future(sent)

    def withdraw(self, question: str, reply: Reply | None = None) -> None:
        if self._asks is not None:
            self._asks.withdraw(question, reply)

    def warn(self, text: str) -> None:
        self.warned += 1
        self.progress(message=text)
        self._say(now=True)

    def in_session(self, id: str) -> None:
        self.session = check_id(id, "session")
        self._say(now=True)

    def emit(self, name: str, value: Json) -> None:
        name = _short(name)
        if name not in self.emitted and len(self.emitted) >= MAX_EMITTED:
            raise InvalidInput(f"A run can emit at most {MAX_EMITTED} names.", hint="Emit one dict instead.")
        self.emitted = {**self.emitted, name: short(jsonable(value).value)}
        self.said = replace(self.said or _NO_PROGRESS, updated_at=self._now())
        self._say()

    def relay(self, said: Progress | None, emitted: dict[str, Json], session: str | None) -> None:
        new_session = session is not None and session != self.session
        if not new_session and (said, emitted) == (self.said, self.emitted):
            return  # an ending says everything again; what is known is not written down again
        self.said, self.emitted = said, emitted
        self.session = session or self.session
        self._say(now=new_session)

    async def relay_event(self, number: int, text: str) -> str:
        return await cast("LedgerPort", self._asks).notify_once(number, text)

    def running_for(self, seconds: float) -> None:
        self._aged(self.task_id, seconds)

    def relay_deaf(self, is_deaf: bool) -> None:
        self.on_thread = is_deaf
        if is_deaf and self.on_deaf is not None:
            self.on_deaf()

    def _say(self, *, now: bool = False) -> None:
        try:
            if asyncio.get_running_loop() is self._loop:
                self._changed(self.task_id, now)
                return
        except RuntimeError:
            pass  # a worker thread
        try:
            self._loop.call_soon_threadsafe(self._changed, self.task_id, now)
        except RuntimeError:
            return  # the loop is closed; nobody is left to hear it


class UnrecordedContext(WorkContext):
    """The context of a function that is called directly, without a task: its reports go nowhere."""

    __slots__ = ()

    def __init__(self) -> None:
        self.task_id = self.thread = self.agent = ""
        self.depth, self.children, self.stops, self.warned = 0, -1, 0, 0
        self.said, self.session, self._asks = None, None, None
        self.emitted = _NO_VALUES
        self.noticed = self._stopping = self.on_thread = self._looked = False
        self._now = time.time

    def running_for(self, seconds: float) -> None:
        pass

    def _say(self, *, now: bool = False) -> None:
        pass


def _percent(value: object) -> float:
    number = as_number(value)
    if number is None or not -math.inf < number < math.inf:
        raise InvalidInput(f"percent={shown(value)} is not a number from 0 to 100.")
    return float(min(100, max(0, number)))


def _short(text: object) -> str:
    return check_words(text, MAX_TEXT)
