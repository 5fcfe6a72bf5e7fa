"""The HTTP server of an open Meantime: on the same event loop, found through server.json.

This file needs nothing beyond the core; the rest is loaded when the server is opened.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from pathlib import Path
from socket import socket as Socket
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from meantime.kernel.argument_checks import check_kind
from meantime.kernel.durations import iso
from meantime.kernel.errors import InvalidInput
from meantime.ports.clock import Clock
from meantime.ports.owner import Owner
from meantime.ports.tasks import Tasks
from meantime.surfaces.unix_socket import UnixSocket, bind_unix

from . import discovery
from .http_settings import HttpSettings, in_force
from .issued_tokens import Grant, IssuedTokens
from .one_time_codes import MINUTES, OneTimeCodes, link
from .port_socket import bind
from .token_file import FILE as TOKENS
from .tokens import Tokens, kept_secret, new_secret

if TYPE_CHECKING:
    from .uvicorn_server import Serving
    from .wrap_endpoint import WrapHosts


class HttpDoor:
    """The result of `serve`. Leaving its block closes it, and so does closing its Meantime."""

    _wraps: WrapHosts | None = None  # of the daemon, which sets it

    def __init__(self, tasks: Tasks, owner: Owner, settings: HttpSettings, clock: Clock) -> None:
        self._tasks = tasks
        self._owner = owner
        self._settings = in_force(settings, os.environ)
        self._clock = clock
        self._serving: Serving | None = None
        self._found: discovery.Discovery | None = None  # while TCP is served
        self._unix: UnixSocket | None = None
        self._tokens = Tokens("")
        self._closing = asyncio.Lock()
        self._closed = False

    @property
    def enabled(self) -> bool:
        """False where the environment says so: then nothing listens, and all else is as it was. A unix
        socket is served all the same."""
        return self._settings.enabled or self._settings.socket is not None

    @property
    def closed(self) -> bool:
        """True for good once it was closed."""
        return self._closed

    @property
    def port(self) -> int:
        """0 while nothing listens."""
        return self._found.port if self._found else 0

    @property
    def url(self) -> str:
        """Where clients find it; empty while nothing listens."""
        return self._found.url if self._found else ""

    @property
    def socket(self) -> Path | None:
        """The unix socket; None while there is none."""
        return self._unix.path if self._unix else None

    @property
    def token(self) -> str:
        """Opens everything. Keep it like a password."""
        return self._tokens.secret

    def thread_token(self, thread: str) -> str:
        """For an agent: it sees this thread, and every other is not found."""
        return self._tokens.for_thread(thread)

    def page_url(self, *, read_only: bool = False, thread: str | None = None, minutes: int = MINUTES) -> str:
        """A link that opens the page for browsers, once. The token that the page gets for it lasts a week.

        read_only: the page can look, and change nothing.
        thread: the page sees this thread only.
        minutes: how long the link can be used.
        Raises InvalidInput while nothing listens on TCP.
        """
        if not self.url:
            raise InvalidInput("This server has no address for browsers.", hint="Open it, with TCP enabled.")
        grant = Grant("read" if check_kind(read_only, bool, "read_only") else "write", thread)
        return link(self.url, self._tokens.codes.make(grant, minutes=minutes)[0])

    async def open(self) -> HttpDoor:
        """Listens from here on. Awaiting it, or entering its block, does the same."""
        if self._serving is not None or not self.enabled:
            return self
        if self.closed:
            raise InvalidInput("This server was closed.", hint="Open another one with serve().")
        serving = _serving()
        try:
            await self._open(serving)
        except BaseException as problem:
            await self._let_go()
            if not isinstance(problem, OSError):
                raise
            raise InvalidInput(
                f"The HTTP server cannot keep its files in {self._settings.folder}: {problem.strerror}.",
                hint="Pass folder=… with one that you can write to.",
            ) from problem
        return self

    async def _open(self, serving: type[Serving]) -> None:
        folder = self._settings.folder
        secret = new_secret() if folder is None else kept_secret(discovery.private_folder(folder))
        issued = IssuedTokens(self._clock, None if folder is None else folder / TOKENS)
        self._tokens = Tokens(secret, issued, OneTimeCodes(self._clock))
        settings, listening = self._settings, self._bind()
        if self._found is not None:
            settings = replace(settings, url=self._found.url)
        self._serving = await serving.begin(
            self._tasks, self._owner, settings, self._clock, self._tokens, listening, self._wraps
        )

    def _bind(self) -> list[Socket]:
        """Binds both or none: a socket that was bound when the other cannot be is closed again."""
        found: list[Socket] = []
        try:
            if self._settings.enabled:
                found.append(bind(self._settings.host, self._settings.port or 0))
                self._found = self._discovery(found[0].getsockname()[1])
            if self._settings.socket is not None:
                self._unix = bind_unix(self._settings.socket)
                found.append(self._unix.listening)
            if self._settings.folder is not None and self._found is not None:
                discovery.write(self._settings.folder, self._found)  # whoever was answered may look for it
        except BaseException:
            for one in found:
                one.close()
            raise
        return found

    async def close(self) -> None:
        """No new connections; answers under way are finished, streams end, server.json goes."""
        async with self._closing:
            self._closed = True
            await self._let_go()

    async def _let_go(self) -> None:
        if self._unix is not None:
            self._unix.remove()  # nobody new: those who come now find another owner, or start one
        if self._serving is not None:
            await self._serving.end()
        if self._settings.folder is not None and self._found is not None:
            discovery.remove(self._settings.folder, self._found)
        self._serving = self._found = self._unix = None

    def __await__(self) -> Generator[Any, None, HttpDoor]:
        return self.open().__await__()

    async def __aenter__(self) -> HttpDoor:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _discovery(self, port: int) -> discovery.Discovery:
        host = self._settings.host
        named = f"[{host}]" if ":" in host else host
        began = iso(self._clock.now()) or ""
        return discovery.Discovery(port, os.getpid(), began, f"http://{named}:{port}")

    def __repr__(self) -> str:
        return f"<HttpDoor {self.url or self.socket or 'closed'}>"


def _serving() -> type[Serving]:
    try:
        from .uvicorn_server import Serving
    except ImportError as problem:
        raise InvalidInput(
            f"The HTTP server needs a package that is not installed: {problem.name}.",
            hint="Install it with: pip install 'meantime[server]'",
            code="extra_missing",
        ) from problem
    return Serving
