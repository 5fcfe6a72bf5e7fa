"""`meantime mcp` with the SDK, connected to the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from functools import partial
from typing import Any

from meantime import __version__
from meantime.app.connected_catalog import ConnectedWorks
from meantime.app.link_ends import client
from meantime.conversation.dialect_lookup import dialect_of
from meantime.kernel.errors import Disconnected, MeantimeError
from meantime.surfaces.caller.agent_sessions import AgentSessions
from meantime.surfaces.terminal.errors import NO_DAEMON, USAGE, CliError

PATIENCE = 30.0  # seconds that a lost daemon is waited for; it may be restarted meanwhile


def serve(thread: str, said: bool, by_session: bool, dialect: str) -> int:
    """Until the client has left."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="meantime mcp: %(message)s")
    try:
        dialect = dialect_of(dialect).name
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint, USAGE) from None
    try:
        from meantime.surfaces.mcp import stdio_server
    except ImportError as missing:
        package = "mcp" if missing.name == "mcp_types" else missing.name  # its types come with it
        text = f"`mcp` needs {package}, which is not installed."
        raise CliError(text, "pip install 'meantime[server,mcp]'") from None
    try:
        asyncio.run(_serve(stdio_server.serve, thread, said, by_session, dialect))
    except Disconnected as problem:
        raise CliError(problem.message, problem.hint, NO_DAEMON) from None
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint) from None
    return 0


async def _serve(serve: Any, thread: str, said: bool, by_session: bool, dialect: str) -> None:
    from meantime.surfaces.mcp.client_sessions import ClientThread  # loads the SDK

    start = os.environ.get("MEANTIME_NO_START", "") in ("", "0")
    tasks = client(None, PATIENCE, start=start)
    await tasks.open()
    try:
        serves = partial(tasks.serves, grade="C", kind="mcp")
        whose = ClientThread(thread, said, by_session, serves, AgentSessions().take_call)
        await serve(tasks, ConnectedWorks(tasks), whose, __version__, dialect)
    finally:
        await tasks.close()
