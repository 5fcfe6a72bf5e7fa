"""A store that forgets at close: dicts that keep their order, and one owner on one loop.

It holds the values themselves, not copies, and answers from indexes that follow what is open: a
thread with a long history leases, lists and counts as fast as a new one.
"""

from __future__ import annotations

from .store import MemoryStore

__all__ = ["MemoryStore"]
