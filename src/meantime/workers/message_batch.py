"""Messages to one recipient within one step of the event loop travel together: one signature and one
publication for all of them. A batch is a JSON array of messages; one message alone is just that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from .message_parts import PIECE, cut
from .messages import MOST_SHOWN, UnreadableMessage

MOST_BATCHED = 128  # messages
_SEVERAL = msgspec.json.Decoder(list[msgspec.Raw])


def unsealed(data: bytes) -> bytes:
    return data


class MessageBatch:
    """Args:
    send: Gets a recipient and a frame that a carrier takes.
    seal: Signs a batch, or leaves it as it is.
    """

    def __init__(
        self, send: Callable[[str, bytes], object], seal: Callable[[bytes], bytes] = unsealed
    ) -> None:
        self._send = send
        self._seal = seal
        self._waiting: dict[str, list[bytes]] = {}
        self._bytes = 0
        self._is_due = False  # in the next step of the event loop
        self._is_expected = False  # a little later

    def add(self, recipient: str, message: bytes, *, wait: float = 0.0) -> None:
        """`wait`: seconds that it may wait for others to travel with."""
        if self._bytes + len(message) > PIECE:
            self.flush()
        waiting = self._waiting.setdefault(recipient, [])
        waiting.append(message)
        self._bytes += len(message)
        if len(waiting) >= MOST_BATCHED:
            self.flush()
        elif wait > 0:
            if not self._is_due and not self._is_expected:
                self._is_expected = True
                asyncio.get_running_loop().call_later(wait, self.flush)
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        self._is_due = self._is_expected = False
        due, self._waiting, self._bytes = self._waiting, {}, 0
        for recipient, messages in due.items():
            data = messages[0] if len(messages) == 1 else b"[" + b",".join(messages) + b"]"
            for part in cut(self._seal(data)):
                self._send(recipient, part)


def unbatched(data: bytes) -> list[bytes]:
    """The messages of a frame. Raises UnreadableMessage."""
    if data[:1] != b"[":
        return [data]
    try:
        return [bytes(each) for each in _SEVERAL.decode(data)]
    except msgspec.MsgspecError as problem:
        raise UnreadableMessage(f"A batch cannot be read: {str(problem)[:MOST_SHOWN]}.") from None
