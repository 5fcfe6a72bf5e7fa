"""Both ends of the link, joined: an owner that others can connect to, and a process that does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from meantime import __version__
from meantime.client.client import Client
from meantime.engines.local import LocalEngine
from meantime.home import Home, home
from meantime.kernel.errors import Disconnected
from meantime.ondemand import NoDaemon, ensure
from meantime.ports.clock import Clock
from meantime.ports.tasks import Tasks
from meantime.runners.function import FunctionRunner
from meantime.runners.shared import SharedFunctionRunner
from meantime.runtime.settings import Settings
from meantime.surfaces.cli.conversation import own_task
from meantime.surfaces.socket.door import SocketDoor
from meantime.surfaces.socket.executors import ExecutorTable

from .clock import SystemClock


class Shared(NamedTuple):
    """The parts of an owner that others connect to."""

    runner: SharedFunctionRunner
    executors: ExecutorTable

    def door(self, tasks: Tasks, path: str | os.PathLike[str]) -> SocketDoor:
        return SocketDoor(tasks, self.executors, Path(os.fsdecode(path)).absolute(), __version__)


def share(functions: FunctionRunner, clock: Clock, settings: Settings) -> Shared:
    executors = ExecutorTable(clock, lease=settings.executor_lease, grace=settings.executor_grace)
    return Shared(SharedFunctionRunner(functions, executors), executors)


def client(link: str | os.PathLike[str] | None, patience: float, *, start: bool) -> Client:
    own = home() if link is None else None
    path = own.link_socket if own else Path(os.fsdecode(link or "")).absolute()
    return Client(  # pyright: ignore[reportAbstractUsage]  its verbs are made from the port
        path,
        LocalEngine([FunctionRunner()]),
        SystemClock(),
        version=__version__,
        patience=patience,
        waits=link is not None,  # nobody else starts this user's daemon
        summon=summoning(own) if own and start else None,
        parent=own_task(),
    )


def summoning(own: Home) -> Callable[[], Awaitable[None]]:
    async def summon() -> None:
        try:
            await asyncio.to_thread(ensure, own)
        except NoDaemon as problem:
            raise Disconnected(problem.message, hint=problem.hint) from None

    return summon
