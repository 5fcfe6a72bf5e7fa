"""The work that can be started through the daemon, for a process that is connected to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from meantime.app.ledger_owner import LedgerOwner
from meantime.kernel.errors import Disconnected, InvalidInput, MeantimeError
from meantime.kernel.model import Task
from meantime.kernel.work import Order
from meantime.ports.owner import About
from meantime.ports.tasks import Options, Tasks
from meantime.surfaces.caller.caller_thread import own_task
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.errors import CliError, DaemonRefused

_OPTIONS = {"timeout", "description", "batch", "id", "meta"}  # of those that a tool here can be given


class ConnectedWorks:
    """Commands are ordered from here, with our environment. Registered tools are the daemon's own."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._owner = LedgerOwner(About)

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        return self._owner.command(command, cwd=cwd, open_stdin=open_stdin)

    commands = True

    async def agents(self) -> Mapping[str, str] | None:
        info = await self._info()
        if info is None:
            return {}  # not known now: the daemon itself says which there are
        found = {one["name"]: one.get("description", "") for one in info["agents"]}
        return found if "agent" in info["runners"] else None

    async def tools(self) -> Sequence[str]:
        info = await self._info()
        return info["tools"] if info is not None else ()

    async def _info(self) -> dict[str, Any] | None:
        def found() -> dict[str, Any] | None:
            try:
                return _request(lambda daemon: daemon.get("/v1/info"))
            except MeantimeError:
                return None

        return await asyncio.to_thread(found)

    def tool(self, name: str, arguments: dict[str, Any]) -> Order:
        raise InvalidInput(
            f"{name} can only be started in the background here.", hint="Start it as a background task."
        )

    async def server_tools(self) -> Sequence[str]:
        return [tool.full_name for tool in await self._tasks.tools(None)]

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        given = {key: value for key, value in structs.asdict(options).items() if key in _OPTIONS}
        body = {**given, "thread": thread, "tool": name, "arguments": arguments, "parent": own_task()}
        body = {key: value for key, value in body.items() if value not in (None, "")}
        made = await asyncio.to_thread(_request, lambda daemon: daemon.post("/v1/tasks", body))
        return await self._tasks.get(made["id"], thread)


def _request(question: Callable[[Daemon], Any]) -> dict[str, Any]:
    """Over HTTP: the link carries no functions but those of the process at its end."""
    try:
        with_daemon = Daemon(start=False)
        try:
            return question(with_daemon)
        finally:
            with_daemon.close()
    except DaemonRefused as no:
        raise MeantimeError(no.what, code=no.code or "refused", hint=no.hint) from None
    except CliError as trouble:
        raise Disconnected(trouble.what, hint=trouble.hint) from None
    except msgspec.MsgspecError as problem:
        raise MeantimeError(f"The daemon's answer cannot be read: {problem}.") from None
