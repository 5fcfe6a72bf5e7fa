"""Both ends of the link, joined: an owner that others can connect to, and a process that does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from meantime import __version__
from meantime.daemon.daemon_autostart import NoDaemon, ensure
from meantime.daemon.home import Home, home
from meantime.engines.local import LocalEngine
from meantime.kernel.errors import Disconnected
from meantime.ports.clock import Clock
from meantime.ports.owner import Catalog
from meantime.runners.function import FunctionRunner
from meantime.runners.shared_functions import SharedFunctionRunner
from meantime.runtime.runtime import Runtime
from meantime.runtime.settings import Settings
from meantime.surfaces.caller.caller_thread import own_task
from meantime.surfaces.socket.executor_table import ExecutorTable
from meantime.surfaces.socket.link_server import LinkServer

from .system_clock import SystemClock

if TYPE_CHECKING:
    from meantime.client.client import Client


class SharedLedger(NamedTuple):
    """The parts of an owner that others are connected to."""

    runner: SharedFunctionRunner
    executors: ExecutorTable

    def link_server(self, runtime: Runtime, catalog: Catalog, path: str | os.PathLike[str]) -> LinkServer:
        return LinkServer(
            runtime,
            catalog,
            self.executors,
            Path(os.fsdecode(path)).absolute(),
            __version__,
            keep_late=runtime.runs.keep_late,
            unread=runtime.waking.unread,
        )


def share(functions: FunctionRunner, clock: Clock, settings: Settings) -> SharedLedger:
    executors = ExecutorTable(clock, lease=settings.executor_lease, grace=settings.executor_grace)
    return SharedLedger(SharedFunctionRunner(functions, executors), executors)


def client(link: str | os.PathLike[str] | None, patience: float, *, start: bool) -> Client:
    from meantime.client.client import Client  # an owner, which needs the rest of this file, has none

    own = home() if link is None else None
    path = own.link_socket if own else Path(os.fsdecode(link or "")).absolute()
    return Client(  # pyright: ignore[reportAbstractUsage]  its verbs are made from the port
        path,
        LocalEngine([FunctionRunner()]),
        SystemClock(),
        version=__version__,
        patience=patience,
        waits=link is not None,  # nobody else starts this user's daemon
        summon=starting_daemon(own) if own and start else None,
        parent=own_task(),
    )


def starting_daemon(own: Home) -> Callable[[], Awaitable[None]]:
    async def summon() -> None:
        try:
            await asyncio.to_thread(ensure, own)
        except NoDaemon as problem:
            raise Disconnected(problem.message, hint=problem.hint) from None

    return summon
