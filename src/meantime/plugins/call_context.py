"""`current()` for a tool that runs in the foreground: linked to its task once it becomes one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from meantime.kernel.errors import Refused
from meantime.kernel.model import Json
from meantime.kernel.questions import Question, Reply
from meantime.ports.runner import Context, Stopped

MOST_SAID = 100  # before the link; a call that ends in time has nobody to tell


class CallContext:
    """Before the link nobody can ask it to stop. Its reports until then are repeated afterwards."""

    noticed = on_thread = False
    stops = 0
    depth = 0
    children = -1

    def __init__(self, task_id: str, thread: str) -> None:
        self.task_id = task_id
        self.thread = thread
        self._context: Context | None = None
        self._said: list[Callable[[Context], None]] | None = None
        self._lock = threading.Lock()

    def attach(self, context: Context) -> None:
        with self._lock:
            self._context, said = context, self._said
        for again in said or ():
            again(context)

    def _say(self, say: Callable[[Context], None]) -> None:
        with self._lock:
            if self._context is None:
                self._said = [*(self._said or ())[-MOST_SAID + 1 :], say]
                return
        say(self._context)

    @property
    def cancelled(self) -> bool:
        return self._context is not None and self._context.cancelled

    def check(self) -> None:
        if self.cancelled:
            raise Stopped("This run was asked to stop.")

    def count_stop(self) -> None:
        """The engine counts on the task's own context."""

    def limit_children(self, depth: int) -> None:
        """A tool in the foreground has no children of its own."""

    def withdraw(self, question: str, reply: Reply | None = None) -> None:
        if self._context is not None:
            self._context.withdraw(question, reply)

    def warn(self, text: str) -> None:
        self._say(lambda context: context.warn(text))

    async def ask(self, question: Question) -> Reply:
        if self._context is None:
            raise Refused("A call that somebody waits for cannot ask.", code="in_foreground")
        return await self._context.ask(question)

    async def notify(self, text: str) -> str:
        if self._context is None:
            raise Refused(
                "A call that somebody waits for tells nothing before it ends.", code="in_foreground"
            )
        return await self._context.notify(text)

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self._say(lambda context: context.spent(turns=turns, tokens=tokens, cost=cost))

    def progress(
        self,
        percent: float | None = None,
        message: str | None = None,
        *,
        phase: str | None = None,
        tool: str | None = None,
    ) -> None:
        self._say(lambda context: context.progress(percent, phase=phase, message=message, tool=tool))

    def in_session(self, id: str) -> None:
        self._say(lambda context: context.in_session(id))

    def emit(self, name: str, value: Json) -> None:
        self._say(lambda context: context.emit(name, value))
