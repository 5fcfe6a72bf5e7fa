"""A connection to the daemon's unix socket, and what becomes of one that breaks."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path

from meantime.home import reach

from .trouble import Gone

CONNECTING = 10.0  # seconds for a daemon that is too busy to take a connection


class Line(HTTPConnection):
    def __init__(self, path: Path, patience: float | None) -> None:
        super().__init__("meantime", timeout=patience)
        self._path = path

    def connect(self) -> None:
        until = time.monotonic() + CONNECTING
        while True:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self.sock.settimeout(self.timeout)
                reach(self.sock, self._path)
                return
            except BlockingIOError:  # more than it can take at once stand before the door
                self.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            except BaseException:
                self.close()
                raise

    def was_closed(self) -> bool:
        """While nobody spoke. Between two questions there is nothing to read but an end."""
        return bool(select.select([self.sock], [], [], 0)[0])


class Arriving:
    """An answer that goes on. Only what comes from the daemon is a Gone: the reader's own troubles with
    what it does with the data are its own."""

    def __init__(self, answer: HTTPResponse) -> None:
        self._answer = answer

    def read(self, most: int) -> bytes:
        """Something, as soon as there is something; nothing at its end."""
        with going():
            return self._answer.read1(most)

    def line(self) -> bytes:
        with going():
            return self._answer.readline()


@contextmanager
def going() -> Generator[None]:
    try:
        yield
    except (HTTPException, OSError) as problem:
        raise gone(problem) from problem


def gone(problem: Exception) -> Gone:
    if isinstance(problem, TimeoutError):
        return Gone("The daemon does not answer.")
    return Gone()
