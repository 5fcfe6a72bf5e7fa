"""Random bytes for ids, read from the system a few thousand at a time: one read per id is the dearest
part of a start."""

from __future__ import annotations

import os

_CHUNK = 4096
_left = b""


def entropy(count: int) -> bytes:
    global _left
    if len(_left) < count:
        _left = os.urandom(_CHUNK)
    taken, _left = _left[:count], _left[count:]
    return taken


def _forget() -> None:
    global _left
    _left = b""


os.register_at_fork(after_in_child=_forget)  # a forked child must not give out the same ids
