"""The servers of a daemon: the socket in its home, and a port if one is free."""

from __future__ import annotations

import logging

from meantime.home import Home
from meantime.kernel.errors import InvalidInput

from .config import Config, http_of
from .meantime import Meantime

LOG = logging.getLogger("meantime.daemon")


async def open_doors(mt: Meantime, home: Home, config: Config) -> None:
    """The socket is what counts: an address that cannot be had is logged, and does not stop the daemon."""
    settings = http_of(config)
    try:
        door = await mt.serve(settings=settings, folder=home.folder, socket=home.http_socket)
    except InvalidInput as problem:
        if not settings.enabled:
            raise
        LOG.warning("HTTP is not served on a port: %s", problem.message)
        door = await mt.serve(settings=settings, folder=home.folder, socket=home.http_socket, tcp=False)
    LOG.info("HTTP is served at %s and %s.", door.url or "no port", door.socket)
