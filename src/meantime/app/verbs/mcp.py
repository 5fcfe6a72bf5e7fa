"""`meantime mcp`: an MCP server on stdin and stdout, in front of the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import click

from meantime import __version__
from meantime.app.connected import ConnectedWorks
from meantime.app.meantime import Meantime
from meantime.kernel.errors import Disconnected, MeantimeError
from meantime.surfaces.cli.trouble import NO_DAEMON, Trouble
from meantime.surfaces.mcp.threads import Whose, is_said, own_thread
from meantime.wording import dialect_of

if TYPE_CHECKING:
    from meantime.client.client import Client


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
        package = "mcp" if missing.name == "mcp_types" else missing.name  # its types come with it
        text = f"`mcp` needs {package}, which is not installed."
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
