"""The owner's messages, as a worker reads them: joined, checked for its signature, and decoded."""

from __future__ import annotations

import logging

from . import messages as say
from .message_batch import unbatched
from .message_parts import PartAssembly
from .owner_key import Verifier

logger = logging.getLogger("meantime")


class OwnerFrames:
    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._parts = PartAssembly()

    def read(self, frame: bytes) -> list[say.FromOwner]:
        """The messages that this part completes. Messages that cannot be read are logged and left out;
        everything that the owner did not sign is left out, too."""
        joined = self._parts.joined(frame)
        data = None if joined is None else self._verifier.opened(joined)
        read = [_read(message) for message in _each(data)] if data is not None else []
        return [said for said in read if said is not None]

    def is_signed(self, data: bytes) -> bool:
        return self._verifier.opened(data) is not None

    def read_offer(self, data: bytes) -> say.OfferMessage | None:
        """None: it is not signed, or not an offer that this version knows."""
        signed = self._verifier.opened(data)
        said = None if signed is None else _read(signed)
        return said if isinstance(said, say.OfferMessage) else None


def _each(data: bytes) -> list[bytes]:
    try:
        return unbatched(data)
    except say.UnreadableMessage as problem:
        logger.warning("A message of the owner was refused: %s", problem)
        return []


def _read(data: bytes) -> say.FromOwner | None:
    try:
        return say.from_owner(data)
    except say.UnreadableMessage as problem:
        logger.warning("A message of the owner was refused: %s", problem)
        return None
