"""`options` of an ACP agent: what the protocol has and other hosts have not."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from meantime.kernel.decode_errors import Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput
from meantime.ports.session import AgentSettings, Brief


class McpServer(Struct, frozen=True, forbid_unknown_fields=True):
    """A server that every session of the agent gets: a command, or a url."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    type: str = "http"  # or "sse", of a url
    headers: dict[str, str] = {}


class AcpOptions(Struct, frozen=True, forbid_unknown_fields=True):
    mcp_servers: dict[str, McpServer] = {}
    mode: str = ""  # one of the agent's own; else what its profile says
    shared: bool = False  # one process for all sessions of a folder
    grace: float | None = None  # seconds in which a cancel is obeyed, before the process is ended
    idle: float = 60.0  # seconds without a turn, after which the process is stopped
    start: float = 60.0  # seconds in which it must have answered initialize, and made a session


def options_of(name: str, settings: AgentSettings) -> AcpOptions:
    def error(mismatch: Mismatch) -> InvalidInput:
        known = f"There are {', '.join(AcpOptions.__struct_fields__)}."
        return InvalidInput(f"options of the agent {name}: {mismatch.text}.", hint=known)

    with mismatch_raises(error):
        options = msgspec.convert(settings.options, AcpOptions)
    for server, given in options.mcp_servers.items():
        if bool(given.command) == bool(given.url):
            raise InvalidInput(f"The MCP server {server} of the agent {name} needs a command or a url.")
    return options


def mcp_servers(options: AcpOptions, brief: Brief) -> list[dict[str, Any]]:
    """As the protocol wants them. A command knows whose task it works for."""
    found: list[dict[str, Any]] = []
    for name, server in options.mcp_servers.items():
        if server.url:
            headers = _pairs(server.headers)
            found.append({"type": server.type, "name": name, "url": server.url, "headers": headers})
            continue
        program, *arguments = server.command
        env = _pairs({**brief.env, **server.env})
        found.append({"name": name, "command": program, "args": arguments, "env": env})
    return found


def _pairs(given: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in given.items()]
