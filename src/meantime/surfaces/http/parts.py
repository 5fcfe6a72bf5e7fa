"""What every family of routes is made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from starlette.requests import Request

from meantime.kernel.model import Task
from meantime.ports.clock import Clock
from meantime.ports.owner import HostCount, Owner
from meantime.ports.tasks import Tasks

from . import asking
from .body import Body, body_of
from .endpoint import thread_of
from .feed import Feed
from .polls import Polls
from .settings import HttpSettings

T = TypeVar("T", bound=Body)


class Beside:
    """Who else serves conversations at this door: MCP, as soon as somebody speaks it."""

    def __init__(self) -> None:
        self.hosts: Callable[[], Sequence[HostCount]] = tuple


class Parts(NamedTuple):
    tasks: Tasks
    owner: Owner
    settings: HttpSettings
    clock: Clock
    feed: Feed
    polls: Polls
    beside: Beside

    async def task(self, request: Request) -> Task:
        """The task that the path names, if the caller may see it."""
        return await asking.find(self.tasks, request.path_params["id"], thread_of(request))

    async def body(self, request: Request, kind: type[T]) -> T:
        return await body_of(request, kind, self.settings, self.clock)
