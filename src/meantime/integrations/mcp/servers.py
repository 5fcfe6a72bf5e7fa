"""Which MCP servers there are, and how each is reached: values, as code or a config file gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from meantime.kernel.errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
MOST_SECONDS = 86_400.0


class StdioServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that we start, and speak with over its stdin and stdout. It ends with us."""

    command: list[str]  # the program and its arguments
    env: dict[str, str] = {}  # added to the few variables that it inherits; never stored
    cwd: str | None = None  # where it is started
    start_timeout: float = 30.0  # seconds until it must have answered
    idle: float = 300.0  # seconds without a call after which it is stopped

    def __post_init__(self) -> None:
        words: Any = self.command
        if (
            not isinstance(words, list | tuple)
            or not words
            or not all(map(_is_word, cast("list[Any]", words)))
        ):
            raise InvalidInput(
                f"command={words!r} does not start a server.",
                hint='Give a list: command=["my-server", "--flag"].',
            )
        env: Any = self.env
        if not isinstance(env, Mapping) or not all(
            _is_word(name) and isinstance(value, str) and "\0" not in value
            for name, value in cast("Mapping[Any, Any]", env).items()
        ):
            raise InvalidInput("env is a dict of texts.")
        _check_seconds(self.start_timeout, self.idle)

    def __repr__(self) -> str:
        return f"StdioServer({self.command}, env of {sorted(self.env)})"  # never the values


class HttpServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A server that runs somewhere else, reached over Streamable HTTP."""

    url: str  # its MCP endpoint
    headers: dict[str, str] = {}  # sent with every request, such as Authorization; never stored
    start_timeout: float = 30.0  # seconds until it must have answered
    idle: float = 300.0  # seconds without a call after which the connection is closed

    def __post_init__(self) -> None:
        url: Any = self.url
        parts = urlsplit(url) if isinstance(url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"url={url!r} is not an address.", hint="Give one like https://host/mcp.")
        headers: Any = self.headers
        if not isinstance(headers, Mapping) or not all(
            isinstance(word, str) for pair in cast("Mapping[Any, Any]", headers).items() for word in pair
        ):
            raise InvalidInput("headers is a dict of texts.")
        _check_seconds(self.start_timeout, self.idle)

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
    try:
        return msgspec.convert(dict(cast("Mapping[str, Any]", given)), kind)
    except msgspec.ValidationError as problem:
        raise InvalidInput(f"The server {name!r} is not configured right: {problem}.") from None


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not NAME.match(name):
        raise InvalidInput(
            f"{name!r} cannot name a server.", hint="Use 1 to 64 letters, digits, '.', '_' or '-'."
        )
    return name


def _is_word(text: Any) -> bool:
    return isinstance(text, str) and bool(text) and "\0" not in text


def _check_seconds(*given: Any) -> None:
    if any(type(one) not in (int, float) or not 0 < one <= MOST_SECONDS for one in given):
        raise InvalidInput("start_timeout and idle are seconds, above 0, up to a day.")
