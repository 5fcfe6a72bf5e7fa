"""The output of a command: read by absolute offset, as a tail, or followed while it goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, TypeAlias

from meantime.kernel.model import Chunk
from meantime.ports.tasks import Tasks

Stream: TypeAlias = Literal["both", "stdout", "stderr"]
PIECE = 65_536


class Log:
    """Offsets count every byte that came, including bytes that are no longer kept. `both` is the two streams
    in the order in which they were read; each has offsets of its own.
    """

    def __init__(self, tasks: Tasks, ref: str, thread: str | None) -> None:
        self._tasks = tasks
        self._ref = ref
        self._thread = thread

    async def read(self, offset: int = 0, *, stream: Stream = "both", limit: int = PIECE) -> Chunk:
        """Reads at most `limit` bytes from `offset`, or from the first byte after it that is kept. Never
        waits.

        stream: "stdout", "stderr" or "both".
        """
        return await self._tasks.read(self._ref, self._thread, stream, offset, limit)

    async def tail(self, lines: int = 50, *, stream: Stream = "both", limit: int = PIECE) -> Chunk:
        """The last lines, in at most `limit` bytes, never from the middle of a character.

        lines: the most lines.
        stream: "stdout", "stderr" or "both".
        """
        return await self._tasks.tail(self._ref, self._thread, stream, lines, limit)

    async def follow(
        self, offset: int = 0, *, stream: Stream = "both", limit: int = PIECE
    ) -> AsyncIterator[Chunk]:
        """Everything from `offset` on, as it comes, until the task has ended; at most `limit` bytes at once.
        A reader that is slower than the command finds in `lost_bytes` how much was no longer kept.

        stream: "stdout", "stderr" or "both".
        """
        while True:
            chunk = await self.read(offset, stream=stream, limit=limit)
            offset = chunk.next
            if chunk.data or chunk.lost_bytes:
                yield chunk
            elif chunk.ended:
                return
            else:
                await self._tasks.wait_output(self._ref, self._thread, stream, chunk.total)

    def __repr__(self) -> str:
        return f"<Log of {self._ref}>"
