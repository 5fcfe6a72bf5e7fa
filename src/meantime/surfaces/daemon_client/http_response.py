"""One answer in HTTP/1.1, read from a socket.

Our own, because `http.client` brings `email` and `ssl` with it: to load them takes longer than a verb.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to load `typing` takes 2 ms, and every verb loads this file
if TYPE_CHECKING:
    from _socket import socket

PIECE = 1 << 16  # bytes that are taken from the socket at once
MOST_HEAD = 1 << 16  # bytes of status line and headers, together with all interim answers before them
DECIMAL, HEX = b"0123456789", b"0123456789abcdefABCDEF"
LONGEST = 16  # digits of a length: enough for any file system
SINGLE = (b"content-length", b"transfer-encoding")  # if two of them differ, nobody knows where it ends


class Broken(ConnectionError):
    """The answer is cut off, or it is not HTTP."""


class Incoming:
    """The bytes of a socket, as lines and as pieces. Not a LineSplitter: only the head has lines, the rest
    must stay uncut, and all lines of a head share one limit."""

    def __init__(self, sock: socket) -> None:
        self._sock = sock
        self.held = b""  # read, and not asked for yet

    def some(self, most: int) -> bytes:
        """Up to so many bytes, as soon as there are any; nothing at the end of the connection."""
        if not self.held:
            self.held = self._sock.recv(PIECE)
        data, self.held = self.held[:most], self.held[most:]
        return data

    def line(self, most: int) -> bytes:
        """One line, without its end."""
        while (end := self.held.find(b"\n", 0, most)) < 0:
            more = self._sock.recv(PIECE) if len(self.held) < most else b""
            if not more:
                raise Broken("a line does not end")
            self.held += more
        line, self.held = self.held[:end], self.held[end + 1 :]
        return line.removesuffix(b"\r")


class HttpResponse:
    """Reads the head when it is made; the body is read by whoever wants it."""

    def __init__(self, sock: socket) -> None:
        self._from = Incoming(sock)
        self.status, lasting, headers = self._head()
        coding, length = headers.get(b"transfer-encoding", b""), headers.get(b"content-length")
        if coding.lower() not in (b"", b"chunked"):
            raise Broken(f"unknown transfer coding: {coding[:80]!r}")
        self._chunked = bool(coding)
        self._left: int | None  # bytes of the body, or of this chunk; None: until the connection ends
        if self._chunked or self.status in (204, 304):
            self._left = 0
        else:
            self._left = None if length is None else _number(length, DECIMAL)
        self._over = self._left == 0 and not self._chunked
        self._last = (
            not lasting
            or self._left is None
            or (self._chunked and length is not None)
            or b"close" in headers.get(b"connection", b"").lower()
        )

    @property
    def will_close(self) -> bool:
        """Whether no other answer can follow on this connection. Known when the body has been read: more
        bytes than were announced belong to nothing that was asked."""
        return self._last or bool(self._from.held)

    def read(self) -> bytes:
        """All of the body."""
        return b"".join(iter(lambda: self.read1(PIECE), b""))

    def read1(self, most: int) -> bytes:
        """A piece of the body, as soon as there is one; nothing at its end."""
        if self._chunked and not self._left and not self._over:
            self._begin_chunk()
        if self._over:
            return b""
        data = self._from.some(most if self._left is None else min(most, self._left))
        if self._left is None:
            self._over = not data
            return data
        if not data:
            raise Broken("the body is cut off")
        self._left -= len(data)
        if not self._left:
            if not self._chunked:
                self._over = True
            elif self._from.line(2):
                raise Broken("a chunk is longer than its size")
        return data

    def _head(self) -> tuple[int, bool, dict[bytes, bytes]]:
        """Status, whether the connection can last, and headers. Interim answers (1xx) are passed over."""
        left = MOST_HEAD
        while True:
            line = self._from.line(left)
            left -= len(line) + 1
            status, lasting = _status(line)
            headers: dict[bytes, bytes] = {}
            while line := self._from.line(left):
                left -= len(line) + 1
                name, colon, value = line.partition(b":")
                name, value = name.lower(), value.strip()
                if (
                    not colon
                    or name != name.strip()
                    or (name in SINGLE and headers.get(name, value) != value)
                ):
                    raise Broken(f"not a header: {line[:80]!r}")
                headers[name] = value
            if status >= 200:
                return status, lasting, headers

    def _begin_chunk(self) -> None:
        size, _, _ = self._from.line(MOST_HEAD).partition(b";")  # extensions follow: nobody here has any
        self._left = _number(size.strip(), HEX)
        if not self._left:
            left = MOST_HEAD
            while line := self._from.line(left):  # trailers
                left -= len(line) + 1
            self._over = True


def _status(line: bytes) -> tuple[int, bool]:
    version, _, rest = line.partition(b" ")
    code = rest[:3]
    if version not in (b"HTTP/1.1", b"HTTP/1.0") or not code.isdigit() or not 100 <= int(code) <= 599:
        raise Broken(f"not a status line: {line[:80]!r}")
    return int(code), version == b"HTTP/1.1"


def _number(said: bytes, digits: bytes) -> int:
    """Nothing but digits: int() would also take signs, underscores and `0x`."""
    if not said or said.strip(digits) or len(said) > LONGEST:
        raise Broken(f"not a length: {said[:80]!r}")
    return int(said, 16 if digits is HEX else 10)
