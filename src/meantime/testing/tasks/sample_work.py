"""The work that the checks hand off, and how they wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Task
from meantime.kernel.work import Call, OrderOf
from meantime.ports.runner import current
from meantime.ports.tasks import Options, Tasks
from meantime.runners.shell.shell_work import Shell

from ..suite.patience import within

Check: TypeAlias = Callable[[Tasks], Awaitable[None]]
E = TypeVar("E", bound=MeantimeError)


class Gate:
    """Work that runs until it is let through, or stopped."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = False
        self._opened = asyncio.Event()
        self.result: Any = "done"

    async def pass_through(self) -> Any:
        self.started.set()
        try:
            await self._opened.wait()
        except asyncio.CancelledError:
            self.stopped = True
            raise
        return self.result

    def open(self) -> None:
        self._opened.set()

    def order(self) -> OrderOf[Any]:
        return Call(self.pass_through).order()


def give(value: Any) -> Any:
    return value


def emit(name: str, value: Any) -> None:
    current().emit(name, value)


def throw(text: str) -> None:
    raise ValueError(text)


async def start(tasks: Tasks, value: Any = 5, thread: str = "a", **options: Any) -> Task:
    return await tasks.start(thread, Call(give, value).order(), Options(**options))


async def ended(tasks: Tasks, value: Any = 5, thread: str = "a", **options: Any) -> Task:
    task = await start(tasks, value, thread, **options)
    (task,) = await within(tasks.wait([task.id], thread))
    return task


async def command(tasks: Tasks, line: str, thread: str = "a", **options: Any) -> Task:
    given = {name: options.pop(name) for name in ("stdin", "open_stdin", "env") if name in options}
    return await tasks.start(thread, Shell(line, **given).order(), Options(**options))


async def refused(kind: type[E], asking: Awaitable[object]) -> E:
    """The error that this must raise, exactly of this class."""
    try:
        came: object = await within(asking)
    except Exception as problem:
        came = problem
    if type(came) is kind:
        return came
    raise AssertionError(f"{came!r} in place of {kind.__name__}")
