"""Lines out of bytes that arrive in pieces, with a limit on each. Loads nothing: verbs of the command line
use it, and so does the first answer of `meantime mcp`."""

from __future__ import annotations

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from asyncio import StreamReader
    from collections.abc import Callable, Iterator

PIECE = 1 << 16  # bytes that are taken from a stream at once


class LineTooLong(ConnectionError):
    """A line has more bytes than its limit, and whoever reads has no use for the rest of the stream."""


class LongLine(bytes):
    """Stands, empty, for a line that had too many bytes to be kept, and says how many. A subclass may look at
    the bytes as they pass."""

    def __init__(self) -> None:
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Each piece of the line, from its beginning."""
        self.size += len(data)


class LineSplitter:
    """Cuts at `\\n` only: a text in JSON may hold what others take for the end of a line. A `\\r` before it
    belongs to the line, so that places in the stream can be counted; JSON takes it for a blank."""

    def __init__(self, most: int, long: Callable[[], LongLine] | None = None) -> None:
        """`most`: bytes of a line, without its end. `long` makes what stands for a line that has more;
        without it, such a line raises LineTooLong as soon as it is over the limit, and ever after."""
        self._most = most
        self._make_long = long
        self._parts: list[bytes] = []  # of the line that has no end yet
        self._size = 0
        self._long: LongLine | None = None  # in place of the parts

    @property
    def begun(self) -> bytes:
        """The line that has no end yet."""
        return b"".join(self._parts)

    @property
    def size(self) -> int:
        """The bytes of the line that has no end yet."""
        return self._size

    @property
    def is_too_long(self) -> bool:
        """The line that has no end yet is over the limit already."""
        return self._size > self._most

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in `data`, without their ends. The rest is kept when all were taken."""
        first, *others = data.split(b"\n")
        self._keep(first)
        if not others:
            return
        yield self._ended()
        for line in others[:-1]:
            if len(line) > self._most:
                self._keep(line)
                line = self._ended()
            yield line
        self._keep(others[-1])

    def end(self) -> Iterator[bytes]:
        """The stream has ended: its last line, if that has no end."""
        if self._size:
            yield self._ended()

    def clear(self) -> None:
        """Forgets the line that has no end yet."""
        self._parts, self._size, self._long = [], 0, None

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            if part:
                self._parts.append(part)
            return
        if self._make_long is None:
            self._parts = []
            raise LineTooLong(f"a line has more than {self._most} bytes")
        if self._long is None:
            self._long = self._make_long()
            for kept in self._parts:
                self._long.feed(kept)
            self._parts = []
        self._long.feed(part)

    def _ended(self) -> bytes:
        if self._long is not None:
            line: bytes = self._long
        else:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self.clear()
        return line


class StreamLines:
    """The lines of an asyncio stream. Errors of the stream, and LineTooLong, come after the lines before."""

    def __init__(self, stream: StreamReader, splitter: LineSplitter, *, with_rest: bool = True) -> None:
        """`with_rest`: the last line counts even if it has no end. Otherwise it was cut, and stays in the
        splitter."""
        self._stream = stream
        self._splitter = splitter
        self._with_rest = with_rest
        self._lines: Iterator[bytes] = iter(())
        self._ended = False

    def __aiter__(self) -> StreamLines:
        return self

    async def __anext__(self) -> bytes:
        while (line := next(self._lines, None)) is None:
            if self._ended:
                raise StopAsyncIteration
            piece = await self._stream.read(PIECE)
            self._ended = not piece
            if piece:
                self._lines = self._splitter.feed(piece)
            elif self._with_rest:
                self._lines = self._splitter.end()
        return line
