"""A connection to the daemon's unix socket, and what becomes of one that breaks."""

from __future__ import annotations

import time
from _socket import AF_UNIX, MSG_PEEK, SOCK_STREAM, socket  # `socket` would load `selectors`
from contextlib import contextmanager, suppress

from meantime.daemon.home import reach
from meantime.surfaces.terminal.errors import DaemonGone

from .http_response import PIECE, HttpResponse

TYPE_CHECKING = False  # to load `typing` takes 2 ms, and every verb loads this file
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from pathlib import Path

CONNECTING = 10.0  # seconds for a daemon that is too busy to take a connection
MOST_LINE = 1 << 24  # bytes of one line of a stream: an event may carry a whole task


class DaemonConnection:
    """One connection, for one question after the other."""

    sock: socket  # there is one after `connect`

    def __init__(self, path: str | Path, patience: float | None) -> None:
        self._path = path
        self._patience = patience

    def connect(self) -> None:
        until = time.monotonic() + CONNECTING
        while True:
            self.sock = socket(AF_UNIX, SOCK_STREAM)
            try:
                self.sock.settimeout(self._patience)
                reach(self.sock, self._path)
                return
            except BlockingIOError:  # its backlog of connections is full
                self.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            except BaseException:
                self.close()
                raise

    def exchange(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Asks, and gives the answer as far as its head. One that refuses may come before the request is read
        to its end: nothing more can be written then, and the answer is there."""
        lines = [f"{method} {path} HTTP/1.1", "Host: meantime"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if not all(line.isprintable() for line in lines):
            raise ValueError("a request of ours has a control character in its head")
        with suppress(BrokenPipeError, ConnectionResetError):
            self.sock.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
        return HttpResponse(self.sock)

    def close(self) -> None:
        self.sock.close()

    def was_closed(self) -> bool:
        """While nobody spoke. Between two questions there is nothing to read but an end."""
        self.sock.settimeout(0)
        try:
            self.sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True


class Arriving:
    """An answer that goes on. Only what comes from the daemon is a Gone: the reader's own troubles with
    what it does with the data are its own."""

    def __init__(self, answer: HttpResponse) -> None:
        self._answer = answer
        self._lines: Iterator[bytes] | None = None

    def read(self, most: int) -> bytes:
        """Something, as soon as there is something; nothing at its end."""
        with going():
            return self._answer.read1(most)

    def line(self) -> bytes:
        """One line with its end; the last one may have none. Nothing at the end. Not beside `read`."""
        if self._lines is None:
            self._lines = self._cut()
        return next(self._lines, b"")

    def _cut(self) -> Iterator[bytes]:
        from meantime.system.line_splitter import LineSplitter  # most verbs read no lines

        splitter = LineSplitter(MOST_LINE)
        while data := self.read(PIECE):
            with going():
                for line in splitter.feed(data):
                    yield line + b"\n"
        yield from splitter.end()


@contextmanager
def going() -> Generator[None]:
    try:
        yield
    except OSError as problem:
        raise gone(problem) from problem


def gone(problem: OSError) -> DaemonGone:
    if isinstance(problem, TimeoutError):
        return DaemonGone("The daemon does not answer.")
    return DaemonGone()
