"""`meantime mcp`: an MCP server on stdin and stdout, in front of the daemon.

A client waits for the first answers, so this loads little; `app/mcp_sdk_server.py` has all that is heavy.
"""

from __future__ import annotations

import os

from meantime.app.mcp_startup import begin
from meantime.kernel.errors import MeantimeError
from meantime.surfaces.cli.verb import option, verb
from meantime.surfaces.mcp.client_thread import is_said, own_thread
from meantime.surfaces.terminal.errors import USAGE, CliError


@verb("mcp", starts=False)
@option("--thread", metavar="ID", help="The conversation; by default that of the agent that starts this.")
@option("--by-session", is_flag=True, help="Each call names its session; see docs/guides/coding-agents.md.")
@option("--dialect", metavar="NAME", default="meantime", help="Tool vocabulary to offer (default: meantime).")
@option("--home", metavar="DIR", help="The daemon's folder ($MEANTIME_HOME).")
def command(thread: str | None, by_session: bool, dialect: str, home: str | None) -> int:
    """An MCP server on stdin and stdout, for a coding agent to start.

    The daemon is started if it does not run. Commands get this process's folder and environment.
    """
    if home is not None:
        os.environ["MEANTIME_HOME"] = os.path.abspath(home)
    try:
        own, said = own_thread(thread), is_said(thread)
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint, USAGE) from None
    code = begin(own, said, by_session, dialect)
    if code is not None:
        return code
    from meantime.app.mcp_sdk_server import serve

    return serve(own, said, by_session, dialect)
