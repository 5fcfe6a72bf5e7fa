"""The tools of one conversation, for an agent's loop of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from meantime.api import Thread
from meantime.kernel.model import Task
from meantime.kernel.work import Order
from meantime.ports.owner import About
from meantime.ports.tasks import Options, Tasks
from meantime.toolset.toolset import Toolset

from .owner import LedgerOwner


def toolset(thread: Thread) -> Toolset:
    """Commands, and the functions of this process that are decorated with @background."""
    tasks = thread._tasks  # pyright: ignore[reportPrivateUsage]  the verbs that it speaks to
    return Toolset(tasks, OwnWorks(tasks), thread.id)


class OwnWorks:
    """Words become work here, in the process that hands it off."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._owner = LedgerOwner(About)

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        return self._owner.command(command, cwd=cwd, open_stdin=open_stdin)

    async def tools(self) -> Sequence[str]:
        return self._owner.tools()

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        return await self._tasks.start(thread, self._owner.tool(name, arguments), options)
