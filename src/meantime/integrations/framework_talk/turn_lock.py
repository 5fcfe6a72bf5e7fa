"""The lock that every Talk of one conversation shares, whichever of them takes a turn."""

from __future__ import annotations

import asyncio
from weakref import WeakValueDictionary

from meantime.thread import Thread


class TurnLock:
    """A web server may make a Talk for each request. Frameworks read their history when a turn begins and
    write it when it ends, so that of two turns at once only one would be kept."""

    def __init__(self, thread: Thread) -> None:
        self.of = thread  # holds its Meantime, so that no other one can have the key of this lock
        self.one = asyncio.Lock()  # turn at a time
        self.turns = 0  # that have ended: a Talk that has seen fewer reads its history again


_LOCKS: WeakValueDictionary[tuple[int, str], TurnLock] = WeakValueDictionary()  # held by the Talks alone


def turn_lock(thread: Thread) -> TurnLock:
    """The lock of this conversation in this process and Meantime."""
    key = (id(thread._tasks), thread.id)  # pyright: ignore[reportPrivateUsage]
    lock = _LOCKS.get(key)
    if lock is None:
        lock = _LOCKS[key] = TurnLock(thread)
    return lock
