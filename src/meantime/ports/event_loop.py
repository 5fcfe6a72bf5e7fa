"""The event loop that something belongs to."""

from __future__ import annotations

import asyncio

from meantime.kernel.errors import InvalidInput


def check_loop(home: asyncio.AbstractEventLoop | None) -> None:
    """Raises InvalidInput where we do not run on this event loop; None is not bound to one yet. A waiter on
    one loop cannot be woken from another: the call would fail inside asyncio, or wait for ever.
    """
    if home is not None and _running() is not home:
        raise InvalidInput(
            "This Meantime was opened on another event loop.",
            hint="Use it on the loop that opened it, or use the Meantime of meantime.blocking.",
        )


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
