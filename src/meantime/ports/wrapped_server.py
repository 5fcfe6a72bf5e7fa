"""The MCP server behind a wrap: whoever holds it passes lines on, and does not know what they say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from meantime.kernel.outcomes import Report


class WrapOrder(Struct, frozen=True, kw_only=True):
    """The server that a host wants, and where it is to run. Nothing of it is stored."""

    words: tuple[str, ...]  # the name of a configured server, a URL, or a command
    cwd: str
    env: dict[str, str]
    headers: dict[str, str] = {}  # for a URL
    is_command: bool = True  # or may be one

    def __repr__(self) -> str:
        return f"WrapOrder({self.words[:1]}, {len(self.env)} variables)"  # never the values


class LoginChallenge(NamedTuple):
    """The answer of a server over HTTP that asks for a login."""

    status: int
    header: str  # WWW-Authenticate
    body: bytes


class WrappedServer(Protocol):
    """One running server, for one session of a host."""

    @property
    def name(self) -> str:
        """As people know it; empty where the server itself must say."""
        ...

    @property
    def is_open(self) -> bool: ...

    def send(self, line: bytes) -> None:
        """One message, without its end. Raises ServerFull where the server has not read for long."""
        ...

    def authorize(self, authorization: str) -> None:
        """The value of `Authorization` that the host sends with the next lines; empty for none. A server that
        is not reached over HTTP has no use for it."""
        ...

    def pause(self, paused: bool) -> None:
        """Whether to stop reading what the server says: nobody takes it at the moment."""
        ...

    async def close(self) -> None: ...


class ServerEnd(Protocol):
    """The receiver of what a server says."""

    def on_line(self, line: bytes) -> bool:
        """One message of the server, without its end. False: it is not a message."""
        ...

    def on_unreadable(self, answers: int | str | None, why: str) -> None:
        """A message that is too long to keep, or broken, and the id of the request that it answers."""
        ...

    def on_unanswered(self, id: int | str | None, why: str) -> None:
        """This request will not be answered, and whether it was carried out is not known."""
        ...

    def on_challenge(self, id: int | str | None, challenge: LoginChallenge, why: str) -> None:
        """The server has not carried out this request: it asks for a login."""
        ...

    def on_gone(self, why: str) -> None:
        """The server has ended, or could not be started. Called once."""
        ...


class ServerFull(Exception):
    """The server reads nothing, and no more is kept for it."""


RemoteReply = tuple[Any, Any] | str  # the result and the error of a request, or why there is neither


class RemoteAnswer(NamedTuple):
    """The answer to a tool call that the server has made a task of its own. `ask` makes a request of the
    server; `release` is called when nobody asks about the task any more."""

    answer: dict[str, Any]
    ask: Callable[[str, dict[str, Any]], Awaitable[RemoteReply]]
    release: Callable[[], None]


class WrappedServers(Protocol):
    """Starts servers. `report_of` reads the result or the error of a tool call as the report of a run."""

    def start(self, order: WrapOrder, end: ServerEnd) -> WrappedServer:
        """Returns at once; lines can be sent from now on. Raises InvalidInput for an order that nobody could
        follow."""
        ...

    def configured(self, name: str, environ: Mapping[str, str]) -> WrapOrder | None:
        """The order of a configured server for a host whose environment is not known: it inherits a few of
        these variables. None where there is no server of this name."""
        ...

    def task_id(self, answer: Any) -> str | None:
        """The id of the task that the server has made of a call; None where it has made none."""
        ...

    def report_of(self, result: Any, error: Any, tool: str) -> Report: ...

    def threshold(self, server: str, tool: str) -> float | None:
        """Seconds after which a call goes to the background; None is never."""
        ...

    def learns(self, server: str, tool: str) -> bool:
        """Whether a tool that usually takes longer goes to the background at once."""
        ...
