"""Whose answer was it? For messages that are too big to keep, or too broken to read."""

from __future__ import annotations

import re

import msgspec

from meantime.system.line_splitter import LongLine

_OUTSIDE = re.compile(rb'["{}\[\],:]')
_INSIDE = re.compile(rb'["\\]')
MOST_MARKS = 200_000  # a message that has more of them before its id is nobody's
MOST_TEXT = 200  # bytes of a key or a value at the top


class IdScan(LongLine):
    """Takes a message piece by piece and keeps nothing of it but the id at its top."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._text = bytearray()  # of the key or value at the top that we are in
        self._key = b""
        self._left = MOST_MARKS
        self._id: int | str | None = None
        self._is_request = False

    @property
    def answers(self) -> int | str | None:
        """The id of the request that this message answers; None if it is not an answer, or has no id."""
        return None if self._is_request else self._id

    def feed(self, data: bytes) -> None:
        super().feed(data)
        at, piece = 0, data
        while at < len(piece) and self._left > 0:
            if self._escaped:
                self._escaped = False
                self._keep(piece[at : at + 1])
                at += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(piece, at)
            if found is None:
                self._keep(piece[at:])
                return
            self._keep(piece[at : found.start()])
            at = found.end()
            self._left -= 1
            self._take(found[0])

    def _take(self, mark: bytes) -> None:
        if self._in_string:
            self._escaped = mark == b"\\"
            self._in_string = self._escaped
            self._keep(mark)
        elif mark == b'"':
            self._in_string = True
            self._keep(mark)
        elif mark in b"{[":
            self._depth += 1
            if self._depth == 1:
                self._text.clear()
        elif mark in b"}]":
            if self._depth == 1:
                self._end_value()
            self._depth -= 1
        elif self._depth == 1 and mark == b":":
            self._key = bytes(self._text).strip()
            self._text.clear()
        elif self._depth == 1:
            self._end_value()

    def _end_value(self) -> None:
        if self._key == b'"method"':
            self._is_request = True
        elif self._key == b'"id"':
            try:
                self._id = msgspec.json.decode(bytes(self._text), type=int | str)
            except msgspec.MsgspecError:
                self._id = None
        self._key = b""
        self._text.clear()

    def _keep(self, piece: bytes) -> None:
        if self._depth == 1 and len(self._text) < MOST_TEXT:
            self._text += piece[:MOST_TEXT]
