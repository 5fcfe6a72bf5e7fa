"""The doors of a daemon: the socket in its home, and a port where one can be had."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket

from meantime.home import Home
from meantime.kernel.errors import MeantimeError
from meantime.surfaces.http.app import make_app
from meantime.surfaces.http.serving import Server, configured
from meantime.surfaces.http.tokens import Tokens, new_secret

from .config import Config, http_of
from .meantime import Meantime

LOG = logging.getLogger("meantime.daemon")


async def open_doors(mt: Meantime, home: Home, config: Config) -> None:
    """TEMPORARY until the HTTP door can listen on a socket."""
    token = new_secret()
    settings = http_of(config)
    app = make_app(mt._runtime, settings, mt._runtime.record.clock, Tokens(token))

    async def wrapped(scope, receive, send):
        scope["server"] = ("x", 5165)
        scope["headers"] = [
            (b"host", b"127.0.0.1:5165"),
            (b"authorization", f"Bearer {token}".encode()),
            *(h for h in scope["headers"] if h[0] not in (b"host",)),
        ]
        await app(scope, receive, send)

    with contextlib.suppress(FileNotFoundError):
        os.unlink(home.http_socket)
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(home.http_socket))
    s.listen(128)
    s.setblocking(False)
    server = Server(configured(wrapped, settings, mt._runtime.record.clock))
    running = asyncio.create_task(server.serve([s]))
    await server.ready.wait()
    mt._doors.append(type("D", (), {"closed": False, "close": lambda self: _end(server, running, home)})())
    try:
        door = await mt.serve(port=settings.port, host=settings.host, folder=home.folder)
        LOG.info("door at %s", door.url)
    except MeantimeError as problem:
        LOG.warning("There is no door on a port: %s", problem)


async def _end(server, running, home):
    server.should_exit = True
    await asyncio.wait([running])
    with contextlib.suppress(OSError):
        os.unlink(home.http_socket)
