"""`meantime mcp --wrap` from its start on. Loads little: its host waits for the server's first answer."""

from __future__ import annotations

import os

from meantime import __version__
from meantime.daemon.home import BadHome, home
from meantime.surfaces.mcp.standard_streams import own_streams, tell_person
from meantime.surfaces.terminal.errors import INTERRUPTED, NO_DAEMON, USAGE, CliError
from meantime.surfaces.wrap.host_pump import HostPump

from .headers_file import HeadersFile

TYPE_CHECKING = False  # to load `typing` takes time
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from meantime.surfaces.caller.agent_sessions import AgentSessions

MOST_SERVERS = 50  # behind one wrap
PATIENCE = 60.0  # seconds for a daemon to start; hosts wait as long as that


def serve(
    words: tuple[str, ...],
    thread: str,
    said: bool,
    threshold: float | None,
    headers: str | None,
    prefix: bool,
    by_session: bool,
) -> int:
    """Until the host has left."""
    if prefix:
        _check_prefixes(words)
    if not words:
        hint = "Name one of [mcp.servers], or give a URL, or a command: meantime mcp --wrap -- my-server"
        raise CliError("--wrap needs a server.", hint, USAGE)
    addresses = [word.partition("=")[2] for word in words] if prefix else list(words[:1])
    _check_urls(addresses)
    if headers is not None and sum("://" in word for word in addresses) != 1:
        hint = "Give one URL with it. Headers of others belong to [mcp.servers] of the configuration."
        raise CliError("--headers is for one server with a URL.", hint, USAGE)
    file = HeadersFile(headers)
    order = {
        "words": [_bytes(word) for word in words],
        "cwd": _bytes(os.getcwd()),
        "env": {_bytes(name): _bytes(value) for name, value in os.environ.items()},
        "headers": file.headers,
    }
    hello = {"version": __version__, "order": order, "thread": thread, "said": said}
    hello |= {"threshold": threshold, "prefix": prefix, "by_session": by_session}
    try:
        own = home()
    except BadHome as problem:
        raise CliError(problem.message, problem.hint, USAGE) from None
    tell_person()
    streams = own_streams()
    address, noted = own.wrap_address, _noted(said)
    pump = HostPump(streams.stdin, streams.stdout, address, hello, _start, noted, file.renewed_login)
    try:
        pump.run()
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as problem:
        hint = "Restart the daemon if it is of an older version: meantime down, then meantime up."
        raise CliError(f"Meantime's daemon is not there: {problem}", hint, NO_DAEMON) from None
    return 0


def _start() -> None:
    own = home()
    if os.environ.get("MEANTIME_NO_START", "") not in ("", "0"):
        return
    from meantime.daemon.daemon_autostart import NoDaemon, ensure  # most of the time a daemon is there

    try:
        ensure(own, wait=PATIENCE)
    except NoDaemon as problem:
        raise OSError(f"{problem.message} {problem.hint}") from None


def _noted(said: bool) -> Callable[[str, object], str]:
    """The lookup of the conversation that a hook has noted for a call."""
    if said:
        return lambda tool, arguments: ""
    notes: list[AgentSessions] = []

    def thread(tool: str, arguments: object) -> str:
        from meantime.surfaces.caller.agent_sessions import AgentSessions  # not before the first call
        from meantime.surfaces.caller.caller_thread import thread_of_session

        if not notes:
            notes.append(AgentSessions())
        session = notes[0].take_call(tool, arguments)
        return thread_of_session(session) if session else ""

    return thread


def _check_prefixes(words: tuple[str, ...]) -> None:
    names = [word.partition("=")[0] for word in words]
    for name in names:
        if (
            not name
            or name[0] == "-"
            or "__" in name
            or not all(one.isalnum() or one in "_-." for one in name)
        ):
            hint = "With --prefix, name servers of [mcp.servers], or write NAME=URL."
            raise CliError(f"{name!r} cannot stand before the names of tools.", hint, USAGE)
    if len(set(names)) < len(names) or len(names) > MOST_SERVERS:
        raise CliError(f"--prefix takes up to {MOST_SERVERS} servers, each once.", "Leave one out.", USAGE)


def _check_urls(words: Iterable[str]) -> None:
    for word in words:
        if "://" in word and not word.startswith(("http://", "https://")):
            raise CliError(f"{word!r} is not a URL of http or https.", "Give one of these, or a name.", USAGE)


def _bytes(text: str) -> str:
    """Texts of the system travel with a character for each byte: they need not be UTF-8."""
    return os.fsencode(text).decode("latin-1")
