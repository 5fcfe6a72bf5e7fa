"""The subagent: a piece of work with a conversation of its own. It is scripted, like the agent.

It hands off two tasks, which the ledger knows as its children, is told of their endings on its own
thread, and answers with what they found. Neither the agent nor the person is told of the children.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from meantime.kernel.notices import Notice
from meantime.kernel.work import Call
from meantime.ports.runner import current
from meantime.runners.shell.shell_work import Shell
from meantime.thread import Thread

CHILDREN = 2


class Subagent:
    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self.heard: list[Notice] = []

    async def survey(self, library: str, errands: str) -> str:
        count = Shell([sys.executable, "count_functions.py", library], cwd=errands)
        try:
            await self.thread.start(Call(find_longest, library), description="find the longest module")
            await self.thread.start(count, description="count the functions", timeout=600)
            return await self._follow()
        except asyncio.CancelledError:
            await self.thread.close()  # nobody would hear its children any more
            raise

    async def _follow(self) -> str:
        transcript, loop = self.thread.transcript, self.thread.loop()
        loop.close()  # nobody talks to it: it is through when its children are
        async for turn in loop.turns():
            async with turn:
                for notice in turn.notices:
                    transcript.add(notice.id, notice.message())
                await turn.ack(transcript=transcript)
            self.heard += turn.notices
            current().progress(100 * len(self.heard) / CHILDREN)
        found = [notice.text.strip() for notice in self.heard if notice.task.status == "completed"]
        return f"{CHILDREN} children: {'; '.join(found) or 'they found nothing'}"


def find_longest(library: str) -> str:
    longest, most = "", 0
    for file in sorted(filter(Path.is_file, Path(library).glob("*.py"))):
        current().check()
        lines = file.read_bytes().count(b"\n")
        if lines > most:
            longest, most = file.name, lines
    return f"longest module {longest}, {most:,} lines"
