"""Followed tasks: what they say is shown line by line, each with the task's id before it."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable

from meantime.kernel.errors import MeantimeError
from meantime.kernel.ids import display
from meantime.kernel.model import Task
from meantime.surfaces.terminal.terminal_text import plain_lines
from meantime.thread import Thread

from . import chat_format

BEFORE = 5  # lines that were said before somebody followed
LONGEST = 2_000  # characters of one line; a command may never end one
BREATH = 0.1  # seconds after each piece: a flood must leave room for typing
AT_ONCE = 100  # lines of one piece that are shown: nobody reads more in a breath


class FollowedTasks:
    def __init__(self, thread: Thread, show: Callable[[list[str]], None]) -> None:
        self._thread = thread
        self._show = show
        self._followed: dict[str, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._followed)

    def toggle(self, task: Task) -> str:
        """Follows it, or no longer; says which."""
        if task.id in self._followed:
            self._followed.pop(task.id).cancel()
            return f"No longer following {chat_format.name(task)}"
        following = asyncio.get_running_loop().create_task(self._follow(task))
        self._followed[task.id] = following
        following.add_done_callback(lambda done: self._forget(task.id, done))
        return f"Following {chat_format.name(task)}"

    async def close(self) -> None:
        left = list(self._followed.values())
        for following in left:
            following.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _forget(self, id: str, done: asyncio.Task[None]) -> None:
        if self._followed.get(id) is done:
            del self._followed[id]

    async def _follow(self, task: Task) -> None:
        prefix = f"[async:{display(task.id)}] "
        lines, log = _Lines(), self._thread.log(task.id)
        try:
            before = await log.tail(BEFORE)
            self._put(prefix, lines.feed(before.data))
            async for chunk in log.follow(before.next):
                lost = [f"… {chunk.lost_bytes:,} bytes are no longer kept"] if chunk.lost_bytes else []
                self._put(prefix, [*lost, *lines.feed(chunk.data)])
                await asyncio.sleep(BREATH)
            self._put(prefix, lines.end())
        except MeantimeError as problem:
            self._put(prefix, [f"cannot be followed any more: {problem}"])

    def _put(self, prefix: str, lines: list[str]) -> None:
        left = len(lines) - AT_ONCE
        if left > 0:
            lines = [f"… {left:,} lines are not shown", *lines[left:]]
        if lines:
            self._show([prefix + plain_lines(line) for line in lines])


class _Lines:
    """Whole lines out of pieces that end anywhere, even in the middle of a character. Not a LineSplitter: a
    long line is shown, in parts that end between characters, and the limit is one of characters."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""

    def feed(self, data: bytes) -> list[str]:
        *whole, self._begun = (self._begun + self._decoder.decode(data)).split("\n")
        if len(self._begun) > LONGEST:
            whole += self.end()
        return [piece for line in whole for piece in _pieces(line)]

    def end(self) -> list[str]:
        begun, self._begun = self._begun, ""
        return _pieces(begun) if begun else []


def _pieces(line: str) -> list[str]:
    line = line.rstrip("\r").rpartition("\r")[2]  # a bar that paints itself over: its last state
    return [line[start : start + LONGEST] for start in range(0, max(1, len(line)), LONGEST)]
