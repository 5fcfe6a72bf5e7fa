"""Counts what one `start` over MCP says on the link, with an empty inbox.

python tools/measure_link.py

A real daemon, a real `meantime mcp`, and a socket between them that counts frames: one JSON array a line,
whose first member says what it is. Pings and frames before the call do not count.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from traced_starts import daemon, mcp_client

QUIET = 1.0  # seconds without a frame after which a call has said everything
CHUNK = 65_536


class Frame(NamedTuple):
    at: float
    to_owner: bool
    tag: str
    verb: str


class Proxy:
    """Stands where the socket of the link was, and passes everything on."""

    def __init__(self, path: Path) -> None:
        self.frames: list[Frame] = []
        self._real = path.with_name("link.counted")
        path.rename(self._real)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listening.accept()
                owner = socket.socket(socket.AF_UNIX)
                owner.connect(str(self._real))
                for source, target, to_owner in ((client, owner, True), (owner, client, False)):
                    threading.Thread(target=self._carry, args=(source, target, to_owner), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, to_owner: bool) -> None:
        rest = b""
        with suppress(OSError):  # either side has left
            while data := source.recv(CHUNK):
                *lines, rest = (rest + data).split(b"\n")
                self.frames += [_frame(line, to_owner) for line in lines]
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listening.close()

    def settle(self) -> None:
        """Until nothing was said for a while."""
        while self.frames and time.monotonic() - self.frames[-1].at < QUIET:
            time.sleep(QUIET / 10)


def _frame(line: bytes, to_owner: bool) -> Frame:
    said = json.loads(line)
    verb = said[2] if said[0] == "ask" else ""
    return Frame(time.monotonic(), to_owner, said[0], verb)


@contextmanager
def counted(path: Path) -> Generator[Proxy]:
    proxy = Proxy(path)
    try:
        yield proxy
    finally:
        proxy.close()


def frames_of_a_start() -> list[Frame]:
    with daemon() as served, counted(served.link_socket) as proxy, mcp_client(served) as client:
        client.call("list")  # what is asked once only is asked now
        proxy.settle()
        before = len(proxy.frames)
        client.call("start", command="sleep 30")
        proxy.settle()
        return [frame for frame in proxy.frames[before:] if frame.tag != "ping"]


def main() -> None:
    frames = frames_of_a_start()
    asked = [frame.verb for frame in frames if frame.tag == "ask"]
    lines = [f"{len(asked)} requests for one start over MCP: {', '.join(asked)}"]
    lines += [f"{'->' if frame.to_owner else '<-'} {frame.tag} {frame.verb}" for frame in frames]
    print("\n".join(lines))  # noqa: T201  what it is for


if __name__ == "__main__":
    main()
