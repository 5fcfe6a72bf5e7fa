"""An operation of Agent Protocol as data, and the checked request that its handler gets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from meantime.surfaces.agent_runs.conversations import AgentConversations
from meantime.surfaces.agent_runs.run_follower import RunFollower
from meantime.surfaces.http.dependencies import Dependencies
from meantime.surfaces.http.task_lookup import own_thread

from .run_requests import ProtocolBody
from .thread_records import ThreadRecords, check_thread


class ProtocolRequest(NamedTuple):
    request: Request
    own: str | None  # the one thread that the caller may see; None is every thread
    body: Any  # of the operation's type

    @property
    def thread(self) -> str:
        return own_thread(check_thread(self.request.path_params["thread"]), self.own)

    @property
    def by(self) -> str:
        """The caller in the ledger: the token of a thread is an agent's, and any other a person's."""
        return "user" if self.own is None else "agent"

    def number(self, name: str, default: int, most: int) -> int:
        """A query parameter, at most so big; the default for one that is not a number."""
        said = self.request.query_params.get(name, "")
        return min(most, int(said)) if said.isascii() and said.isdigit() and len(said) < 10 else default

    def flag(self, name: str) -> bool:
        return self.request.query_params.get(name, "").lower() in ("1", "true")


class ProtocolSite:
    """The parts that all handlers share."""

    def __init__(self, deps: Dependencies) -> None:
        self.deps = deps
        self.tasks = deps.tasks
        self.records = ThreadRecords(deps.tasks)
        self.conversations = AgentConversations(deps.tasks, deps.owner)
        self.follower = RunFollower(deps.tasks, self.conversations, deps.clock, deps.settings.heartbeat)


class Operation(NamedTuple):
    method: Literal["GET", "POST", "PATCH", "DELETE"]
    path: str  # under the address of the protocol
    handler: Callable[[ProtocolSite, ProtocolRequest], Awaitable[Response]]
    body: type[ProtocolBody] | None = None
    writes: bool = False  # otherwise a token that only reads will do
