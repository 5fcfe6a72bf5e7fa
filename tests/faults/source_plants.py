"""Bugs that a careless hand could make in delayed starts. Each must be caught."""

from __future__ import annotations

from typing import Any


def cancelled_starts_run() -> None:
    """The cancel of a start that is not due yet is answered, and it starts all the same."""
    from meantime.runtime.runtime import Runtime

    cancel = Runtime.cancel

    async def pretend(self: Any, ref: str, thread: str | None, **options: Any) -> Any:
        if (await self.get(ref, thread)).run.not_before is None:
            return await cancel(self, ref, thread, **options)
        return None

    Runtime.cancel = pretend  # type: ignore[method-assign]
