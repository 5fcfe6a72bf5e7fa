"""The port: the one that was asked for, nine after it, then the system's choice."""

from __future__ import annotations

import errno
import socket

from meantime.kernel.errors import InvalidInput

TRIES = 10


def bind(address: str, port: int) -> socket.socket:
    """A socket that listens nowhere yet, but has its port."""
    tries = [*range(port, min(port + TRIES, 65_536)), 0] if port else [0]
    for choice in tries:
        try:
            return _bound(address, choice)
        except OSError as problem:
            if problem.errno not in (errno.EADDRINUSE, errno.EACCES) or not choice:
                raise InvalidInput(
                    f"The HTTP server cannot be opened at {address}: {problem.strerror}.",
                    hint="Name an address of this machine.",
                ) from problem
    raise AssertionError("the system's choice is the last try")


def _bound(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # With its protocol named: asyncio turns Nagle off only then, and every answer would take 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        # SO_REUSEADDR lets two sockets bind while neither listens: so it listens at once.
        made.listen(128)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
