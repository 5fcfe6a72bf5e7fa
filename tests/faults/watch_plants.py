"""Bugs that a careless hand could make in watches. Each must be caught."""

from __future__ import annotations

from typing import Any


def cursor_before_the_notice() -> None:
    """The cursor is on the disk first, the notice follows: a crash in between loses the match."""
    from meantime.runtime.watched_work import WatchedWork

    async def found(self: Any, task: Any, events: Any, cursor: Any) -> bool:
        now = self._record.live[task.id].run.cursor
        await self.save(task, now, cursor)
        return await self._notices.found(task, events, None)

    WatchedWork.found = found  # type: ignore[method-assign]


def cursor_after_the_notice() -> None:
    """The notice is on the disk first, the cursor follows: a crash in between tells the match again."""
    from meantime.runtime.watched_work import WatchedWork

    async def found(self: Any, task: Any, events: Any, cursor: Any) -> bool:
        told = await self._notices.found(task, events, None)
        now = self._record.live.get(task.id)
        if now is not None:
            await self.save(task, now.run.cursor, cursor)
        return told

    WatchedWork.found = found  # type: ignore[method-assign]


def match_counted_twice() -> None:
    """A line at the end of a block is searched again with the next one."""
    from meantime.kernel.line_blocks import LineBlocks

    feed = LineBlocks.feed
    fed = 0

    def again(self: Any, data: bytes, *, last: bool = False) -> bytes:
        nonlocal fed
        block = feed(self, data, last=last)
        fed += bool(block)
        return block + block[block.rstrip(b"\n").rfind(b"\n") + 1 :] if fed % 7 == 3 else block

    LineBlocks.feed = again  # type: ignore[method-assign]


def rest_of_a_line_is_dropped() -> None:
    """The cursor is behind a line of which only the beginning was read."""
    from meantime.kernel.line_blocks import LineBlocks

    LineBlocks.searched = property(lambda self: self.at + 3)  # type: ignore[assignment]


PLANTS = (
    "cursor_before_the_notice",
    "cursor_after_the_notice",
    "match_counted_twice",
    "rest_of_a_line_is_dropped",
)
