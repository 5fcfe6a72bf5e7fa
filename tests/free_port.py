"""A port for a program that cannot say which one it has taken."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 32_000)  # below those that the kernel gives to whoever comes before the program listens


def free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("all ports are taken")
