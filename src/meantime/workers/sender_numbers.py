"""Numbers of messages that have an effect once. They grow within one life of their sender, which has a name
that it drew at random: no clock has a say, so one that is turned back between two lives loses nothing."""

from __future__ import annotations

MOST_SENDERS = 16  # lives that are remembered; the one that was not heard for longest is forgotten


class SenderNumbers:
    __slots__ = ("_newest",)

    def __init__(self) -> None:
        self._newest: dict[str, int] = {}

    def is_new(self, sender: str, number: int) -> bool:
        return number > self._newest.get(sender, 0)

    def note(self, sender: str, number: int) -> None:
        self._newest.pop(sender, None)
        self._newest[sender] = number
        if len(self._newest) > MOST_SENDERS:
            del self._newest[next(iter(self._newest))]
