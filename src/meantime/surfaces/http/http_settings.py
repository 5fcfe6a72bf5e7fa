"""The settings of the HTTP server, and their values in the environment."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.constraints import PORT as PORT_NUMBER
from meantime.kernel.constraints import check_choice
from meantime.kernel.errors import InvalidInput

PORT = 5165
AUTH = ("peer", "strict")
_PORT_NAMES = ("MEANTIME_API_PORT", "ASYNCAGENTS_API_PORT")
_ENABLED_NAMES = ("MEANTIME_API_ENABLED", "ASYNCAGENTS_API_ENABLED")


class HttpSettings(Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int | None = None  # None is what the environment says, else 5165; 0 is the system's choice
    auth: str = "peer"  # "strict": a program of the same user needs a token, too
    hosts: tuple[str, ...] = ()  # more names that a Host header may have, with their port if it matters
    allow_remote: bool = False  # bind to an address that other machines can reach
    folder: Path | None = None  # where server.json and the token lie; None keeps the token in memory
    enabled: bool = True  # of TCP; the unix socket is served whatever the environment says
    tcp: bool = True
    socket: Path | None = None  # where a unix socket is served, too
    url: str = ""  # where TCP is served, once that is known
    version: str = ""  # what /v1/health says that we are
    clients: int = 64  # event streams at once
    backlog: int = 256  # events that a slow stream may be behind, before it starts again
    heartbeat: float = 30.0  # seconds of silence on a stream
    batch: float = 0.1  # seconds in which changes of one task become one event
    header_seconds: float = 10.0  # for a whole request head to arrive
    header_bytes: int = 65_536
    body_bytes: int = 1_000_000
    body_seconds: float = 30.0  # for a whole body to arrive
    waiting: int = 256  # requests that wait at once
    stall_seconds: float = 30.0  # that a client may take nothing of its answer
    connections: int = 512
    stop_seconds: float = 5.0  # that answers under way have when the door closes


def in_force(settings: HttpSettings, environment: Mapping[str, str]) -> HttpSettings:
    """Checked, and with what the environment says. Ours comes before seed 001's; the code's before both."""
    wanted = _first(environment, _ENABLED_NAMES).strip().lower() != "false"
    enabled = settings.tcp and settings.enabled and wanted
    settings = replace(settings, port=_port(settings, environment), enabled=enabled)
    check_choice(settings.auth, "auth", AUTH)
    if not is_loopback(settings.host) and not settings.allow_remote:
        raise InvalidInput(
            f"{settings.host} can be reached from other machines.",
            hint="Keep 127.0.0.1 and forward a port, or pass allow_remote=True; then reads need the token.",
        )
    return settings


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _port(settings: HttpSettings, environment: Mapping[str, str]) -> int:
    if settings.port is not None:
        return PORT_NUMBER(settings.port, "port")
    for name in _PORT_NAMES:
        said = environment.get(name, "").strip()
        if said:
            return PORT_NUMBER(int(said) if said.isascii() and said.isdigit() else said, name)
    return PORT


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environment[name] for name in names if name in environment), "")
