"""Output that came with the answer to a watch, for the read that follows: a followed line then needs no other
request."""

from __future__ import annotations

from typing import NamedTuple

from meantime.kernel.model import Chunk, Claim
from meantime.ports.clock import Clock

AHEAD = 65_536  # bytes that an answer may carry
FRESH = 1.0  # seconds: whoever reads later sees what has come since
MOST_AHEAD = 64  # stretches, of all runs


class _Place(NamedTuple):
    nonce: str
    stream: str
    offset: int


class OutputAhead:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[_Place, tuple[Chunk, float]] = {}  # and when it came; oldest first

    def keep(self, claim: Claim, stream: str, offset: int, chunk: Chunk) -> None:
        place = _Place(claim.nonce, stream, offset)
        self._found.pop(place, None)
        while len(self._found) >= MOST_AHEAD:
            del self._found[next(iter(self._found))]
        if len(chunk.data) <= AHEAD:  # a worker is not trusted to keep to it
            self._found[place] = (chunk, self._clock.monotonic())

    def take(self, claim: Claim, stream: str, offset: int, most: int) -> Chunk | None:
        """For one reader only: a second one at the same place asks the worker."""
        chunk, came = self._found.pop(_Place(claim.nonce, stream, offset), (None, 0.0))
        if chunk is None or len(chunk.data) > most or self._clock.monotonic() - came > FRESH:
            return None
        return chunk
