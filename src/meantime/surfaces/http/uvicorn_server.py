"""uvicorn, on a loop that is somebody else's: no signal handlers, no logs of its own, a bounded stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator
from functools import partial
from typing import Any

import uvicorn

from meantime.kernel.errors import InvalidInput
from meantime.ports.clock import Clock
from meantime.ports.owner import Owner
from meantime.ports.tasks import Tasks

from .asgi_app import HttpApp
from .client_limits import guarded_protocol
from .http_settings import HttpSettings
from .tokens import Tokens
from .wrap_endpoint import WrapHosts

SECOND = 1.0


class Serving:
    def __init__(self, app: HttpApp, server: UvicornServer, listening: list[socket.socket]) -> None:
        self._app = app
        self._server = server
        self._running = asyncio.create_task(server.serve(listening), name="meantime-http")

    @classmethod
    async def begin(
        cls,
        tasks: Tasks,
        owner: Owner,
        settings: HttpSettings,
        clock: Clock,
        tokens: Tokens,
        listening: list[socket.socket],
        wraps: WrapHosts | None = None,
    ) -> Serving:
        """Returns when requests are answered."""
        app = HttpApp(tasks, owner, settings, clock, tokens, wraps)
        serving = cls(app, UvicornServer(configured(app, settings, clock)), listening)
        ready = asyncio.create_task(serving._server.ready.wait())
        await asyncio.wait([ready, serving._running], return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            ready.cancel()
            for one in listening:
                one.close()
            raise InvalidInput("The HTTP server could not be opened.") from serving._running.exception()
        app.restore()
        return serving

    async def end(self) -> None:
        """Streams never end by themselves, so they are ended first. A client that does not read the rest of
        its answer in time is disconnected.
        """
        self._server.leave()
        await self._app.close()
        await asyncio.wait([self._running])
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()


class UvicornServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        self.should_exit = True
        self._leaving.set()

    async def main_loop(self) -> None:
        """uvicorn looks ten times a second whether it should leave. An idle daemon sleeps: it is told so, and
        wakes once a second for the Date header.
        """
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), SECOND)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn takes every socket for one of TCP, and not every loop can do that."""
        given = sockets or []
        await super().startup([one for one in given if one.family != socket.AF_UNIX])
        for one in given:
            if one.family == socket.AF_UNIX:
                self.servers.append(await self._serve_unix(one))
        self.ready.set()

    async def _serve_unix(self, one: socket.socket) -> asyncio.Server:
        config: Any = self.config  # its protocols have no common type
        given = {"config": config, "server_state": self.server_state, "app_state": self.lifespan.state}
        protocol = partial(config.http_protocol_class, **given)
        return await asyncio.get_running_loop().create_unix_server(protocol, sock=one)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the program that we are a guest in."""
        yield


def configured(app: HttpApp, settings: HttpSettings, clock: Clock) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=guarded_protocol(settings, clock),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,  # it would write capability paths, and so tokens, into logs
        proxy_headers=False,  # a header must not say who the peer is
        server_header=False,
        h11_max_incomplete_event_size=settings.header_bytes,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=max(1, round(settings.stop_seconds)),
    )
