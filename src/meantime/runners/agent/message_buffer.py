"""An agent's text in a run: whole messages, and the one that is coming."""

from __future__ import annotations

from collections import deque

MOST = 256 << 10  # characters; the oldest go first
_BREAK = "\n\n"


class MessageBuffer:
    def __init__(self) -> None:
        self._whole: deque[str] = deque()
        self._coming: deque[str] = deque()
        self._size = 0

    def piece(self, text: str) -> None:
        if text:
            self._coming.append(text[-MOST:])
            self._size += len(self._coming[-1])
            self._trim()

    def message(self, text: str) -> None:
        """The whole of it, in place of its pieces."""
        self.cut()
        if text:
            self._whole.append(text[-MOST:])
            self._size += len(self._whole[-1])
            self._trim()

    def cut(self) -> None:
        """The message that was coming is dropped, or comes again from its beginning."""
        self._size -= sum(map(len, self._coming))
        self._coming.clear()

    def _trim(self) -> None:
        while self._size > MOST:
            self._size -= len((self._whole or self._coming).popleft())

    @property
    def text(self) -> str:
        return _BREAK.join(part for part in (*self._whole, "".join(self._coming)) if part)
