"""`meantime mcp`: an MCP server on stdin and stdout, in front of the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec
from msgspec import structs

from meantime import __version__
from meantime.app.meantime import Meantime
from meantime.app.owner import LedgerOwner
from meantime.kernel.errors import Disconnected, InvalidInput, MeantimeError
from meantime.kernel.model import Task
from meantime.kernel.work import Order
from meantime.ports.owner import About
from meantime.ports.tasks import Options, Tasks
from meantime.surfaces.cli.speaking import Daemon
from meantime.surfaces.cli.trouble import NO_DAEMON, Refused, Trouble
from meantime.surfaces.mcp.threads import Whose, is_said, own_thread
from meantime.wording import dialect_of

if TYPE_CHECKING:
    from meantime.client.client import Client

_OPTIONS = {"timeout", "description", "batch", "id", "meta"}  # of those that a tool here can be given


@click.command("mcp")
@click.option("--thread", metavar="ID", help="The conversation; else it is found from who starts this.")
@click.option("--by-session", is_flag=True, help="Each call names its session; see docs/agents.md.")
@click.option("--dialect", metavar="NAME", default="meantime", help="Whose words the tools have.")
@click.option("--home", metavar="DIR", help="The daemon's folder ($MEANTIME_HOME).")
def command(thread: str | None, by_session: bool, dialect: str, home: str | None) -> int:
    """An MCP server on stdin and stdout, for a coding agent to start.

    The daemon is started if it does not run. Commands get this process's folder and environment.
    """
    if home is not None:
        os.environ["MEANTIME_HOME"] = os.path.abspath(home)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="meantime mcp: %(message)s")
    try:
        own, said = own_thread(thread), is_said(thread)
        dialect = dialect_of(dialect).name
    except MeantimeError as problem:
        raise Trouble(problem.message, problem.hint, 2) from None
    try:
        from meantime.surfaces.mcp.stdio import serve
    except ImportError as missing:
        text = f"`mcp` needs {missing.name}, which is not installed."
        raise Trouble(text, "pip install 'meantime[server,mcp]'") from None
    try:
        asyncio.run(_serve(serve, own, said, by_session, dialect))
    except Disconnected as problem:
        raise Trouble(problem.message, problem.hint, NO_DAEMON) from None
    except MeantimeError as problem:
        raise Trouble(problem.message, problem.hint) from None
    return 0


async def _serve(serve: Any, thread: str, said: bool, by_session: bool, dialect: str) -> None:
    start = os.environ.get("MEANTIME_NO_START", "") in ("", "0")
    async with Meantime.connect(start=start) as mt:
        tasks = cast("Client", mt.thread(thread)._tasks)  # pyright: ignore[reportPrivateUsage]  the verbs that it speaks to
        whose = Whose(thread, said, by_session, partial(tasks.serves, grade="C", kind="mcp"))
        await serve(tasks, ConnectedWorks(tasks), whose, __version__, dialect)


class ConnectedWorks:
    """Commands are ordered from here, with our environment. Registered tools are the daemon's own."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._owner = LedgerOwner(About)

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        return self._owner.command(command, cwd=cwd, open_stdin=open_stdin)

    commands = True

    async def agents(self) -> Sequence[str] | None:
        if "agent" not in await self._info("runners"):
            return None
        return [one["name"] for one in await self._info("agents")]

    async def tools(self) -> Sequence[str]:
        return await self._info("tools")

    async def _info(self, key: str) -> list[Any]:
        def found() -> list[Any]:
            try:
                return _asked(lambda daemon: daemon.get("/v1/info"))[key]
            except MeantimeError:
                return []

        return await asyncio.to_thread(found)

    def tool(self, name: str, arguments: dict[str, Any]) -> Order:
        raise InvalidInput(
            f"{name} can only be started in the background here.", hint="Start it as a background task."
        )

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        given = {key: value for key, value in structs.asdict(options).items() if key in _OPTIONS}
        body = {**given, "thread": thread, "tool": name, "arguments": arguments}
        body = {key: value for key, value in body.items() if value not in (None, "")}
        made = await asyncio.to_thread(_asked, lambda daemon: daemon.post("/v1/tasks", body))
        return await self._tasks.get(made["id"], thread)


def _asked(question: Callable[[Daemon], Any]) -> dict[str, Any]:
    """Over HTTP: the link carries no functions but those of the process at its end."""
    try:
        with_daemon = Daemon(start=False)
        try:
            return question(with_daemon)
        finally:
            with_daemon.close()
    except Refused as no:
        raise MeantimeError(no.what, code=no.code or "refused", hint=no.hint) from None
    except Trouble as trouble:
        raise Disconnected(trouble.what, hint=trouble.hint) from None
    except msgspec.MsgspecError as problem:
        raise MeantimeError(f"The daemon's answer cannot be read: {problem}.") from None
