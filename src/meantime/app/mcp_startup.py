"""`meantime mcp` from its start until the SDK is loaded. Loads little: its client waits for an answer.

Everything out of the ordinary (no daemon, a daemon of another version, an unknown dialect, an SDK that is
not installed) is declined here, and left to `app/mcp_sdk_server.py`, which says what is wrong.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder

from meantime import __version__
from meantime.surfaces.daemon_client.daemon_client import Daemon
from meantime.surfaces.mcp.client_thread import instructions
from meantime.surfaces.mcp.front import Front
from meantime.surfaces.mcp.handshake import Handshake
from meantime.surfaces.mcp.standard_streams import open_closed, own_streams
from meantime.surfaces.terminal.errors import INTERRUPTED, NO_DAEMON, CliError

TYPE_CHECKING = False  # to load `typing` takes time
if TYPE_CHECKING:
    from typing import Any

PATIENCE = 2.0  # seconds for a daemon that is busy: then the SDK is loaded meanwhile
_HEAVY = ("meantime.app.mcp_sdk_server", "meantime.surfaces.mcp.stdio_server")


def begin(thread: str, said: bool, by_session: bool, dialect: str) -> int | None:
    """Answers the client until the SDK is loaded. None: serve it with the SDK from here on. A number: the
    client has left, and this is the exit code."""
    open_closed()
    toolset = _toolset(dialect, by_session) if PathFinder.find_spec("mcp") else None
    if toolset is None:
        return None
    text = instructions(toolset["guidance"], thread, said=said, by_argument=by_session)
    front = Front(own_streams(), Handshake(__version__, text, toolset["tools"]), _load)
    try:
        if front.run():
            return None
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    if front.is_loading:
        os._exit(code)  # a thread in the middle of an import may not survive an orderly end
    return code


def _toolset(dialect: str, by_session: bool) -> dict[str, Any] | None:
    """The tools that the daemon offers an agent. None where it is not for us to say."""
    try:
        daemon = Daemon(start=False)
        try:
            more = {"bySession": "true"} if by_session else {}
            found = daemon.get("/v1/toolset", patience=PATIENCE, dialect=dialect, **more)
        finally:
            daemon.close()
    except CliError as problem:
        if problem.exit_code == NO_DAEMON:
            _summon()
        return None
    except ValueError:  # not JSON
        return None
    return found if found["version"] == __version__ else None


def _summon() -> None:
    """The daemon starts while the SDK is loaded. The server itself asks again, and reports the problem."""
    if os.environ.get("MEANTIME_NO_START", "") not in ("", "0"):
        return
    import threading

    from meantime.daemon.daemon_autostart import NoDaemon, ensure
    from meantime.daemon.home import BadHome, home

    def summon() -> None:
        with suppress(NoDaemon, BadHome):
            ensure(home())

    threading.Thread(target=summon, name="starting the daemon", daemon=True).start()


def _load() -> None:
    """All that is heavy. An error comes up again, where somebody says it."""
    gc.disable()  # hardly anything of it is garbage, and looking for some takes an eighth of the time
    try:
        with suppress(Exception):
            for module in _HEAVY:
                import_module(module)
    finally:
        gc.enable()
