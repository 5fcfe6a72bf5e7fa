"""Server-sent events out of bytes that arrive in pieces."""

from __future__ import annotations

from collections.abc import Iterator

from meantime.system.line_splitter import LineSplitter, LongLine


class SseEvents:
    """The data of each event. A line that is longer than `most` becomes one of `long`, and stands for its
    event."""

    def __init__(self, most: int, long: type[LongLine]) -> None:
        self._lines = LineSplitter(most, long)
        self._data: list[bytes] = []
        self.last_id = ""  # from which the stream can be taken up again
        self.retry = 1.0  # seconds, as the server says

    def feed(self, piece: bytes) -> Iterator[bytes]:
        for line in self._lines.feed(piece):
            if isinstance(line, LongLine):
                self._data = []
                yield line
                continue
            name, _, given = line.rstrip(b"\r").partition(b":")
            value = given.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"id" and b"\0" not in value:
                self.last_id = value[:1_000].decode("utf-8", "replace")
            elif name == b"retry" and value.isdigit():
                self.retry = min(60.0, int(value[:9]) / 1_000)
            elif not name and not given and self._data:
                event, self._data = b"\n".join(self._data), []
                yield event
