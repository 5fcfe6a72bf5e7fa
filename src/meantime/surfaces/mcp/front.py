"""Stdin and stdout of `meantime mcp` until the SDK is loaded: the handshake is answered at once, everything
else is kept, in its order, for the SDK. Standard library only."""

from __future__ import annotations

import os
import select
import time

from meantime.system.line_splitter import PIECE, LineSplitter

from .handshake import Handshake
from .standard_streams import StandardStreams

TYPE_CHECKING = False  # to load `typing` takes time, and the client waits
if TYPE_CHECKING:
    from collections.abc import Callable

IDLE = 0.25  # seconds without a word after which the SDK is loaded anyway
GRACE = 0.01  # and seconds for a client that asks for its tools right after something else
ROOM = 4_096  # bytes that a pipe takes at once, if it takes any
MOST_UNREAD = 1 << 20  # bytes that are kept; what is more waits in the pipe


class Front:
    """`load` is called once, on a thread of its own. It is put off until the client has its tools: the
    interpreter runs one thread at a time, and an answer would wait for it."""

    def __init__(self, streams: StandardStreams, handshake: Handshake, load: Callable[[], object]) -> None:
        self._streams = streams
        self._handshake = handshake
        self._load = load
        self._lines = LineSplitter(MOST_UNREAD + PIECE)  # no line is longer: nothing more is read then
        self._kept: list[bytes] = []
        self._due = time.monotonic() + IDLE  # when to load
        self._loaded, self._wake = os.pipe()
        self._is_loading = False

    @property
    def is_loading(self) -> bool:
        return self._is_loading

    def run(self) -> bool:
        """True: it is loaded, and the streams say what is left to do. False: the client has left."""
        try:
            while not self._is_over():
                if self._step():
                    self._hand_over()
                    return True
        except (BrokenPipeError, ConnectionResetError):  # nobody reads our answers any more
            pass
        return False

    def _is_over(self) -> bool:
        return self._streams.ended and not self._kept and not self._streams.unsent

    def _step(self) -> bool:
        """Waits for the next thing that happens; whether that is the end of loading."""
        waiting = select.poll()
        waiting.register(self._loaded, select.POLLIN)
        if not self._streams.ended and self._size() < MOST_UNREAD:
            waiting.register(self._streams.stdin, select.POLLIN)
        left = None if self._is_loading else max(0.0, self._due - time.monotonic()) * 1000
        happened = dict(waiting.poll(left))
        if self._streams.stdin in happened:
            self._read()
        if not self._is_loading and time.monotonic() >= self._due:
            self._begin_loading()
        return self._loaded in happened

    def _size(self) -> int:
        return self._lines.size + sum(map(len, self._kept))

    def _read(self) -> None:
        try:
            data = os.read(self._streams.stdin, PIECE)
        except BlockingIOError:
            return
        except OSError:  # its terminal is gone, or its socket was cut off
            data = b""
        for line in self._lines.feed(data):
            self._on_line(line + b"\n")
        if not data:
            self._streams.ended = True
            for line in self._lines.end():
                self._on_line(line)

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            return
        answer = None if self._streams.unsent else self._handshake.answer(line)
        now = time.monotonic()
        if answer is None:
            self._kept.append(line)
            self._due = min(self._due, now if self._handshake.listed else now + GRACE)
            return
        self._send(answer)
        if not self._kept:
            self._due = now if self._handshake.listed else now + IDLE

    def _send(self, answer: bytes) -> None:
        """As much as there is room for. A client that does not read its answers is not waited for here."""
        room = select.poll()
        room.register(self._streams.stdout, select.POLLOUT)
        try:
            while answer and room.poll(0):
                answer = answer[os.write(self._streams.stdout, answer[:ROOM]) :]
        except BlockingIOError:
            pass
        self._streams.unsent = answer

    def _begin_loading(self) -> None:
        # Not `_thread` alone: whoever loads `threading` first is its main thread for good.
        import threading

        self._is_loading = True
        threading.Thread(target=self._loading, name="loading the SDK", daemon=True).start()

    def _loading(self) -> None:
        try:
            self._load()
        finally:  # what went wrong, whoever uses it finds out
            os.write(self._wake, b"!")

    def _hand_over(self) -> None:
        os.close(self._loaded)
        os.close(self._wake)
        self._streams.unread = b"".join(self._kept) + self._lines.begun
        self._streams.replay = self._handshake.replay
