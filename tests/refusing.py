"""A server that refuses: it answers at once, and resets the connection without reading the rest."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.waiting import until

AT_ONCE = struct.pack("ii", 1, 0)  # a close is a reset


class RefusingServer:
    """Args:
    answers: Of the connections, in their order; the last is that of all that follow.
    reads: Bytes of a question that are read before it is answered.
    path: Of a unix socket; without it the server is on loopback.
    tls: The server's side of it.
    """

    def __init__(
        self,
        answers: Sequence[bytes],
        *,
        reads: int = 0,
        path: Path | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._answers = answers
        self._reads = reads
        self._tls = tls
        self.refused = 0  # connections that are closed by now
        if path is None:
            self._listening = socket.create_server(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        else:
            self._listening = socket.socket(socket.AF_UNIX)
            self._listening.bind(str(path))
            self._listening.listen()
            self.address = str(path)
        self._thread = threading.Thread(target=self._serve, name="refusing")
        self._thread.start()

    def wait(self, refused: int = 1) -> None:
        """Blocks until so many connections were refused, and the reset of the last has arrived."""
        until(lambda: self.refused >= refused, f"{refused} connections are refused")

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                met, _ = self._listening.accept()
            except OSError:  # closed
                return
            with suppress(OSError):
                self._refuse(met)
            self.refused += 1

    def _refuse(self, met: socket.socket) -> None:
        answer = self._answers[min(self.refused, len(self._answers) - 1)]
        if met.family == socket.AF_INET:
            met.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a reset drops what is not sent yet
        with met if self._tls is None else self._tls.wrap_socket(met, server_side=True) as talk:
            if self._reads:
                talk.recv(self._reads)
            talk.sendall(answer)
            talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)


@contextmanager
def refusing(*answers: bytes, **given: object) -> Iterator[RefusingServer]:
    server = RefusingServer(answers, **given)  # type: ignore[arg-type]
    try:
        yield server
    finally:
        server.close()


def http_refusal(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
