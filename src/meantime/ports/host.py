"""A host owns a conversation. This is the side that is told, for hosts that we push to.

Hosts that pull use `thread.turn()` and `thread.wakeups()` and need none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from meantime.kernel.notices import Notice


class Delivery(Struct, frozen=True):
    """The promises that a host can make, stated honestly (N21).

    A: the transcript is in our store, or the host keeps our cursor with it: exactly once.
    B: the host can look for a notice id in its transcript: we look before sending; exactly once.
    C: fire and forget: at least once, with a stable id.
    """

    grade: str
    can_wake: bool = False  # an idle agent takes a turn when it is told
    can_push: bool = True


class Host(Protocol):
    """A host owns a conversation, and notices are pushed to it. `Meantime.attach(thread, host)` begins it."""

    delivery: Delivery

    async def has(self, thread: str, notice: str) -> bool:
        """Whether the conversation of this thread holds this notice already; asked before every delivery.

        thread: the thread whose conversation is meant.
        notice: the id of the notice.
        """
        ...

    async def deliver(self, thread: str, notices: Sequence[Notice]) -> None:
        """Puts the notices into the conversation of this thread, in this order. Returning means that it holds
        them; raising means that the delivery failed and comes again.

        thread: the thread whose conversation is meant.
        notices: what it is told.
        """
        ...
