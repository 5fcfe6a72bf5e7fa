"""The catalog of a daemon that is older than this program, over HTTP: its link has none.

The package was upgraded while the daemon ran. After its restart nothing of this is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from meantime.kernel.errors import Disconnected, MeantimeError
from meantime.kernel.model import Task
from meantime.ports.tasks import Options, Tasks
from meantime.surfaces.caller.caller_thread import own_task
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.terminal.errors import CliError, DaemonRefused

_OPTIONS = {"timeout", "description", "batch", "id", "meta"}  # of those that a tool can be given


class OlderDaemon:
    """ports.owner.Catalog, as far as HTTP carries it."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def agents(self) -> Mapping[str, str] | None:
        info = await self._info()
        found = {one["name"]: one.get("description", "") for one in info["agents"]}
        return found if "agent" in info["runners"] else None

    async def registered_tools(self) -> Sequence[str]:
        return (await self._info())["tools"]

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        given = {key: value for key, value in structs.asdict(options).items() if key in _OPTIONS}
        body = {**given, "thread": thread, "tool": name, "arguments": arguments, "parent": own_task()}
        body = {key: value for key, value in body.items() if value not in (None, "")}
        made = await asyncio.to_thread(_request, lambda daemon: daemon.post("/v1/tasks", body))
        return await self._tasks.get(made["id"], thread)

    async def _info(self) -> dict[str, Any]:
        return await asyncio.to_thread(_request, lambda daemon: daemon.get("/v1/info"))


def _request(question: Callable[[Daemon], Any]) -> dict[str, Any]:
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
