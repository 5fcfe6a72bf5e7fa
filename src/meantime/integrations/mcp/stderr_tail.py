"""The last words of a program, to be shown with the error of its ending."""

from __future__ import annotations

from collections import deque

TAIL_LINES, TAIL_CHARACTERS = 20, 2_000  # of what it says on stderr
LAST_LINES, LAST_CHARACTERS = 3, 300  # of these in an error that a model reads


class StderrTail:
    """The last lines of a program's stderr. Not a LineSplitter: of a long line the last characters are kept,
    even before it has its end."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=TAIL_LINES)
        self._rest = b""  # of a line that has no end yet

    def write(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[-TAIL_CHARACTERS:]
        self._lines.extend(line[-TAIL_CHARACTERS:] for line in lines if line.strip())

    @property
    def text(self) -> str:
        return "\n".join(self._texts())[-TAIL_CHARACTERS:]

    @property
    def last_words(self) -> str:
        """The last few lines, each of them whole. One that is too long has a sign where it is cut."""
        kept: list[str] = []
        for line in reversed(self._texts()[-LAST_LINES:]):
            if sum(map(len, kept)) + len(line) > LAST_CHARACTERS:
                break
            kept.insert(0, line)
        return "\n".join(kept) or "".join(f"…{line[-LAST_CHARACTERS:]}" for line in self._texts()[-1:])

    def _texts(self) -> list[str]:
        lines = (line.decode("utf-8", "replace").rstrip() for line in (*self._lines, self._rest))
        return [line for line in lines if line]
