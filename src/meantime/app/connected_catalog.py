"""The work that can be started through the daemon, for a process that is connected to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from meantime.app.ledger_owner import LedgerOwner
from meantime.app.older_daemon import OlderDaemon
from meantime.client.client import Client
from meantime.kernel.errors import InvalidInput, MeantimeError
from meantime.kernel.model import Task
from meantime.kernel.work import Order
from meantime.ports.owner import About, Catalog
from meantime.ports.tasks import Options


class ConnectedWorks:
    """Commands are ordered from here, with our environment. Agents and registered tools are the daemon's own:
    the link carries their names."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._older = OlderDaemon(client)
        self.command = LedgerOwner(About).command

    commands = True
    plain_commands = True

    @property
    def _catalog(self) -> Catalog:
        return self._client if self._client.has_catalog else self._older

    async def agents(self) -> Mapping[str, str] | None:
        if self._client.is_connected:
            try:
                return await self._catalog.agents()
            except MeantimeError:
                pass
        return {}  # not known now: the daemon itself says which there are

    async def registered_tools(self) -> Sequence[str]:
        if self._client.is_connected:
            try:
                return await self._catalog.registered_tools()
            except MeantimeError:
                pass
        return ()

    async def server_tools(self) -> Sequence[str]:
        return [tool.full_name for tool in await self._client.tools(None)]

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        return await self._catalog.start_tool(thread, name, arguments, options)

    def tool(self, name: str, arguments: dict[str, Any]) -> Order:
        raise InvalidInput(
            f"{name} can only be started in the background here.", hint="Start it as a background task."
        )
