"""Followed tasks: what they say is shown line by line, each with the task's id before it."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable

from meantime.api import Thread
from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Task
from meantime.surfaces.cli.safe import plain_lines

from . import texts

BEFORE = 5  # lines that were said before somebody followed
LONGEST = 2_000  # characters of one line; a command may never end one
BREATH = 0.05  # seconds after each piece: a flood must leave room for typing


class Following:
    def __init__(self, thread: Thread, show: Callable[[str], None], tell: Callable[[str], None]) -> None:
        self._thread = thread
        self._show = show
        self._tell = tell
        self._followed: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._followed)

    def toggle(self, task: Task) -> str:
        """Follows it, or no longer; says which."""
        if task.id in self._followed:
            self._followed.pop(task.id).cancel()
            return f"No longer following {texts.name(task)}"
        following = asyncio.get_running_loop().create_task(self._follow(task))
        self._followed[task.id] = following
        following.add_done_callback(lambda done: self._forget(task.id, done))
        return f"Following {texts.name(task)}"

    async def close(self) -> None:
        left = list(self._followed.values())
        for following in left:
            following.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _forget(self, id: str, done: asyncio.Task[None]) -> None:
        if self._followed.get(id) is done:
            del self._followed[id]

    async def _follow(self, task: Task) -> None:
        lines = _Lines(texts.prefix(task.id), self._show)
        log = self._thread.log(task.id)
        try:
            before = await log.tail(BEFORE)
            lines.feed(before.data)
            async for chunk in log.follow(before.next):
                if chunk.lost_bytes:
                    self._show(f"{texts.prefix(task.id)}… {chunk.lost_bytes} bytes are no longer kept")
                lines.feed(chunk.data)
                await asyncio.sleep(BREATH)
            lines.end()
        except MeantimeError as problem:
            self._tell(f"{texts.name(task)} can no longer be followed: {problem}")


class _Lines:
    """Whole lines out of pieces that end anywhere, also in the middle of a character."""

    def __init__(self, prefix: str, show: Callable[[str], None]) -> None:
        self._prefix = prefix
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""

    def feed(self, data: bytes) -> None:
        *whole, self._begun = (self._begun + self._decoder.decode(data)).split("\n")
        for line in whole:
            self._put(line)
        if len(self._begun) > LONGEST:
            self.end()

    def end(self) -> None:
        if self._begun:
            self._put(self._begun)
        self._begun = ""

    def _put(self, line: str) -> None:
        line = line.rstrip("\r").rpartition("\r")[2]  # a bar that paints itself over: its last state
        for start in range(0, max(1, len(line)), LONGEST):
            self._show(self._prefix + plain_lines(line[start : start + LONGEST]))
