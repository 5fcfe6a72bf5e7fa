"""Random bytes for ids, read from the system a few thousand at a time: one read per id is the dearest
part of a start."""

from __future__ import annotations

import os
import threading

_CHUNK = 4096
_left = b""
_lock = threading.Lock()


def entropy(count: int) -> bytes:
    global _left
    with _lock:  # two Meantimes may run on two threads
        if len(_left) < count:
            _left = os.urandom(_CHUNK)
        taken, _left = _left[:count], _left[count:]
        return taken


def _forget() -> None:
    global _left, _lock
    _left, _lock = b"", threading.Lock()


os.register_at_fork(after_in_child=_forget)  # a forked child must not give out the same ids
