"""Which MCP servers there are, and how each is reached: values, as code or a config file gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from meantime.kernel.constraints import Constraint, check_fields
from meantime.kernel.decode_errors import mismatch_raises
from meantime.kernel.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
MOST_SECONDS = 86_400.0
# Variables of ours that a server inherits where no host gives it an environment.
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")


# -- what each field must be


def _is_word(text: Any) -> bool:
    return isinstance(text, str) and bool(text) and "\0" not in text


def _is_command(value: Any) -> bool:
    words = cast("list[Any]", value)
    return isinstance(value, list | tuple) and len(words) > 0 and all(map(_is_word, words))


def _are_variables(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _is_word(name) and isinstance(said, str) and "\0" not in said
        for name, said in cast("Mapping[Any, Any]", value).items()
    )


def _are_headers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(word, str) for pair in cast("Mapping[Any, Any]", value).items() for word in pair
    )


def _is_address(value: Any) -> bool:
    parts = urlsplit(value) if isinstance(value, str) else None
    return parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)


def _are_seconds(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= MOST_SECONDS


COMMAND = Constraint(
    "a program and its arguments",
    _is_command,
    error="{name}={value} does not start a server.",
    hint='Give a list: command=["my-server", "--flag"].',
)
ENV = Constraint("a dict of texts", _are_variables, error="{name} is {must}.")  # never the values
HEADERS = Constraint("a dict of texts", _are_headers, error="{name} is {must}.")
ADDRESS = Constraint(
    "an address",
    _is_address,
    error="{name}={value} is not {must}.",
    hint="Give one like https://host/mcp.",
)
SECONDS = Constraint(
    "seconds, above 0, up to a day", _are_seconds, error="start_timeout and idle are {must}."
)


class StdioServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that we start, and speak with over its stdin and stdout. It ends with us."""

    command: Annotated[list[str], COMMAND]  # the program and its arguments
    env: Annotated[dict[str, str], ENV] = {}  # added to the few variables that it inherits; never stored
    cwd: str | None = None  # where it is started
    start_timeout: Annotated[float, SECONDS] = 30.0  # seconds until it must have answered
    idle: Annotated[float, SECONDS] = 300.0  # seconds without a call after which it is stopped

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"StdioServer({self.command}, env of {sorted(self.env)})"  # never the values


class HttpServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that runs somewhere else, reached over Streamable HTTP."""

    url: Annotated[str, ADDRESS]  # its MCP endpoint
    headers: Annotated[dict[str, str], HEADERS] = {}  # sent with every request, such as a token; never stored
    start_timeout: Annotated[float, SECONDS] = 30.0  # seconds until it must have answered
    idle: Annotated[float, SECONDS] = 300.0  # seconds without a call after which the connection is closed

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        return f"HttpServer({self.url!r}, headers {sorted(self.headers)})"  # never the values


Server: TypeAlias = StdioServer | HttpServer


def checked(servers: Mapping[str, Any]) -> dict[str, Server]:
    """By name. A plain dict, as a config file has it, is a StdioServer if it has a command."""
    return {_check_name(name): _server(name, given) for name, given in servers.items()}


def _server(name: str, given: Any) -> Server:
    if isinstance(given, StdioServer | HttpServer):
        return given
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"The server {name!r} is a {type(given).__name__}.",
            hint="Give StdioServer(command=[…]) or HttpServer(url=…).",
        )
    kind = StdioServer if "command" in given else HttpServer
    said = f"The server {name!r} is not configured right"
    with mismatch_raises(lambda mismatch: InvalidInput(f"{said}: {mismatch.text}.")):
        return msgspec.convert(dict(cast("Mapping[str, Any]", given)), kind)


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.match(name):
        raise InvalidInput(
            f"{name!r} cannot name a server.", hint="Use 1 to 64 letters, digits, '.', '_' or '-'."
        )
    return name
