"""Messages that are bigger than a carrier takes travel in parts. A message that is sent again fills the gaps
of the first time."""

from __future__ import annotations

import hashlib
import math
import struct
from collections import OrderedDict

PIECE = 256 * 1024  # bytes of one part
MOST_MESSAGE = 64 << 20  # bytes of a message
MOST_OPEN = 16  # messages of one sender that are incomplete; the oldest is forgotten
MOST_OPEN_BYTES = 2 * MOST_MESSAGE  # of these messages
MOST_SENDERS = 2_000  # with incomplete messages
MOST_HELD = 2 * MOST_OPEN_BYTES  # bytes of the incomplete messages of all senders
WHOLE, PART = b"w", b"p"
_HEAD = struct.Struct("!16sII")  # digest of the message, number of the part, count of parts


def cut(data: bytes) -> list[bytes]:
    if len(data) <= PIECE:
        return [WHOLE + data]
    digest = hashlib.sha256(data).digest()[:16]
    count = math.ceil(len(data) / PIECE)
    return [
        PART + _HEAD.pack(digest, number, count) + data[number * PIECE : (number + 1) * PIECE]
        for number in range(count)
    ]


class PartAssembly:
    """The parts of one sender."""

    def __init__(self) -> None:
        self._open: OrderedDict[bytes, dict[int, bytes]] = OrderedDict()
        self.held = 0  # bytes of incomplete messages

    def joined(self, frame: bytes) -> bytes | None:
        """The message that this frame completes, if it does."""
        if frame[:1] == WHOLE:
            return frame[1:]
        if frame[:1] != PART or len(frame) <= 1 + _HEAD.size:
            return None
        digest, number, count = _HEAD.unpack_from(frame, 1)
        if not number < count <= math.ceil(MOST_MESSAGE / PIECE):
            return None
        parts = self._open.setdefault(digest, {})
        self.held -= len(parts.get(number, b""))
        parts[number] = frame[1 + _HEAD.size :][:PIECE]
        self.held += len(parts[number])
        self._forget_oldest()
        if len(parts) < count:
            return None
        if self._open.pop(digest, None) is not None:
            self.held -= _size(parts)
        data = b"".join(parts[at] for at in sorted(parts))
        return data if hashlib.sha256(data).digest()[:16] == digest else None

    def _forget_oldest(self) -> None:
        while len(self._open) > MOST_OPEN or self.held > MOST_OPEN_BYTES:
            _, parts = self._open.popitem(last=False)
            self.held -= _size(parts)


class SenderParts:
    """The parts of many senders. A server without accounts lets anybody have any number of names, so all of
    them together are bounded, too: whoever sent nothing for longest is forgotten."""

    def __init__(self) -> None:
        self._by_sender: OrderedDict[str, PartAssembly] = OrderedDict()
        self.held = 0  # bytes of incomplete messages

    def joined(self, sender: str, frame: bytes) -> bytes | None:
        """The message of this sender that this frame completes, if it does."""
        if frame[:1] == WHOLE:
            return frame[1:]
        parts = self._by_sender.setdefault(sender, PartAssembly())
        self._by_sender.move_to_end(sender)
        held = parts.held
        data = parts.joined(frame)
        self.held += parts.held - held
        if not parts.held:
            del self._by_sender[sender]
        while len(self._by_sender) > MOST_SENDERS or self.held > MOST_HELD:
            _, oldest = self._by_sender.popitem(last=False)
            self.held -= oldest.held
        return data


def _size(parts: dict[int, bytes]) -> int:
    return sum(len(part) for part in parts.values())
