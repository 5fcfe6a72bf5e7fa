"""`meantime mcp`: an MCP server on stdin and stdout, in front of the daemon; with `--wrap`, another server.

A client waits for the first answers, so this loads little; `app/mcp_sdk_server.py` has all that is heavy.
"""

from __future__ import annotations

import os

from meantime.kernel.errors import MeantimeError
from meantime.surfaces.cli.parameter_types import Number
from meantime.surfaces.cli.verb import argument, option, verb
from meantime.surfaces.mcp.client_thread import is_said, own_thread
from meantime.surfaces.mcp.standard_streams import tell_person
from meantime.surfaces.terminal.errors import USAGE, CliError


@verb("mcp", starts=False, allow_interspersed_args=False)
@option("--thread", metavar="ID", help="The conversation; by default that of the agent that starts this.")
@option("--by-session", is_flag=True, help="Each call names its session; see docs/guides/coding-agents.md.")
@option("--dialect", metavar="NAME", default="meantime", help="Tool vocabulary to offer (default: meantime).")
@option("--wrap", is_flag=True, help="Serve the MCP server SERVER, with its slow calls as background tasks.")
@option(
    "--threshold",
    metavar="S",
    type=Number(-1, 86_400),
    help="With --wrap: seconds until a call is slow; -1 never (default: [mcp] wrap_threshold, 10).",
)
@option("--headers", metavar="FILE", help="With --wrap URL: a private file of HTTP headers, one a line.")
@option("--prefix", is_flag=True, help="With --wrap: several servers, whose tools are SERVER__TOOL.")
@option("--home", metavar="DIR", help="The daemon's folder ($MEANTIME_HOME).")
@argument("server", nargs=-1, metavar="[[--] SERVER…]")
def command(
    thread: str | None,
    by_session: bool,
    dialect: str,
    wrap: bool,
    threshold: float | None,
    headers: str | None,
    prefix: bool,
    home: str | None,
    server: tuple[str, ...],
) -> int:
    """An MCP server on stdin and stdout, for a coding agent to start.

    The daemon is started if it does not run. Commands get this process's folder and environment.

    With --wrap, SERVER is the name of one of [mcp.servers], a URL, or a command. With --prefix it is several
    names, or NAME=URL.
    """
    if home is not None:
        os.environ["MEANTIME_HOME"] = os.path.abspath(home)
    try:
        own, said = own_thread(thread), is_said(thread)
    except MeantimeError as problem:
        raise CliError(problem.message, problem.hint, USAGE) from None
    if wrap:
        from meantime.app.wrap_startup import serve as serve_wrap

        return serve_wrap(server, own, said, threshold, headers, prefix, by_session)
    if server:
        raise CliError("A server is given, but --wrap is not.", "Write: meantime mcp --wrap SERVER", USAGE)
    given = {"--threshold": threshold is not None, "--headers": headers is not None, "--prefix": prefix}
    if needless := [name for name, is_given in given.items() if is_given]:
        what = f"{needless[0]} is for --wrap, which is not given."
        raise CliError(what, "Write: meantime mcp --wrap [OPTIONS] SERVER", USAGE)
    tell_person()
    from meantime.app.mcp_startup import begin

    code = begin(own, said, by_session, dialect)
    if code is not None:
        return code
    from meantime.app.mcp_sdk_server import serve

    return serve(own, said, by_session, dialect)
