"""A carrier within one process, which loses, doubles, reorders and delays as it is told to."""

from __future__ import annotations

from .memory_broker import MemoryBroker
from .message_faults import MessageFaults

__all__ = ["MemoryBroker", "MessageFaults"]
