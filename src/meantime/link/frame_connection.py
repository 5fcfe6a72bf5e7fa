"""One connection: frames in, frames out. Messages of one round of the event loop go out together."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import msgspec

from meantime.system.line_splitter import PIECE, LineSplitter, LineTooLong

from .frames import MAX_FRAME, Frame
from .verb_messages import encode

F = TypeVar("F")
MAX_UNSENT = 2 * MAX_FRAME  # bytes that the other side may leave unread


class Wire(asyncio.Protocol, Generic[F]):
    def __init__(
        self,
        decode: Callable[[Any], F],
        received: Callable[[F], object],
        lost: Callable[[], object],
        made: Callable[[], object] = lambda: None,
    ) -> None:
        self._decode = decode
        self._received = received
        self._lost = lost
        self._made = made
        self._transport: asyncio.Transport | None = None
        self._lines = LineSplitter(MAX_FRAME)
        self._unsent: list[bytes] = []

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def peer(self, name: str) -> Any:
        return None if self._transport is None else self._transport.get_extra_info(name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are not derived from it
        self._made()

    def data_received(self, data: bytes) -> None:
        try:
            for line in self._lines.feed(data):
                if not self.is_open:
                    return
                self._take(line)
        except LineTooLong:
            self.abort()

    def _take(self, line: bytes) -> bool:
        try:
            frame = self._decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.abort()  # not one of us, or another version: nothing it says can be believed
            return False
        self._received(frame)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._unsent = []
        if isinstance(exc, BrokenPipeError | ConnectionResetError):
            self._take_rest()
        self._lost()

    def _take_rest(self) -> None:
        """Takes a refusal or a goodbye that came before the connection was closed. A write that meets the end
        of a connection ends the transport at once, and that reads nothing more."""
        with contextlib.suppress(OSError, LineTooLong), self.peer("socket").dup() as rest:
            rest.setblocking(False)
            while data := rest.recv(PIECE):
                if not all(map(self._take, self._lines.feed(data))):
                    return

    def send(self, frame: Frame) -> None:
        self.send_encoded(encode(frame))

    def send_encoded(self, line: bytes) -> None:
        if not self.is_open:
            return
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self.flush)
        self._unsent.append(line)
        self._unsent.append(b"\n")

    def flush(self) -> None:
        if self._unsent and self._transport is not None and self.is_open:
            self._transport.write(b"".join(self._unsent))
            if self._transport.get_write_buffer_size() > MAX_UNSENT:
                self._transport.abort()
        self._unsent = []

    def close(self) -> None:
        """After what was sent has gone out."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
