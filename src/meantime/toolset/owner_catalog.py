"""The work that can be started in the process that owns the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from meantime.kernel.model import Task
from meantime.ports.owner import Owner
from meantime.ports.tasks import Options, Tasks


class OwnerCatalog:
    """Commands get the environment of this process."""

    def __init__(self, tasks: Tasks, owner: Owner) -> None:
        self._tasks = tasks
        self._owner = owner
        self.tool, self.command = owner.tool, owner.command

    commands = True
    plain_commands = True

    async def agents(self) -> Mapping[str, str] | None:
        about = self._owner.about()
        found = {one.name: one.description for one in about.agents}
        return found if "agent" in about.runners else None

    async def registered_tools(self) -> Sequence[str]:
        return self._owner.tools()

    async def server_tools(self) -> Sequence[str]:
        return [tool.full_name for tool in await self._tasks.tools(None)]

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        return await self._tasks.start(thread, self.tool(name, arguments), options)
