"""Which server a wrap wants: a configured one by its name, a URL, or a command."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from meantime.kernel.errors import InvalidInput
from meantime.kernel.outcomes import Report
from meantime.ports.wrapped_server import ServerEnd, WrapOrder, WrappedServer

from .raw_stdio import RawStdio
from .remote_task import needs_input, task_of
from .servers import INHERITED, HttpServer, Server, StdioServer, checked
from .tool_results import report_of, report_of_error

NEVER = -1.0
EVERY = "*"
MOST_NAMES = 500  # characters of them in an error


class RawServers:
    """Implements ports.wrapped_server.WrappedServers."""

    def __init__(
        self,
        servers: Mapping[str, Any],
        threshold: float,
        thresholds: Mapping[str, float],
        learned: Collection[str] = (),
    ) -> None:
        """`thresholds` by server, or by "server/tool"; -1 is never. `learned`: servers, tools, or "*"."""
        self._servers = checked(servers)
        self._threshold = threshold
        self._thresholds = thresholds
        self._learned = frozenset(learned)

    def start(self, order: WrapOrder, end: ServerEnd) -> WrappedServer:
        name, server = self._found(order)
        if isinstance(server, StdioServer):
            env = {**order.env, **server.env}
            return RawStdio(name, server.command, env, server.cwd or order.cwd, end)
        try:
            from .wire.raw_http import RawHttp  # its library takes a while to load
        except ImportError as missing:
            text = f"A server over HTTP needs a package that is not installed: {missing.name}."
            raise InvalidInput(text, hint="pip install 'meantime[mcp]'", code="extra_missing") from None
        return RawHttp(name, server, end)

    def _found(self, order: WrapOrder) -> tuple[str, Server]:
        first, *more = order.words or ("",)
        if not more and first in self._servers:
            return first, self._servers[first]
        if not more and first.startswith(("http://", "https://")):
            return "", HttpServer(url=first, headers=order.headers)
        if not first:
            raise InvalidInput(
                "--wrap needs a server.",
                hint="Name one of [mcp.servers], or give a URL, or a command: --wrap -- my-server --flag.",
            )
        if not order.is_command:
            known = ", ".join(self._servers)[:MOST_NAMES] or "none"
            text = f"There is no server {first!r} in [mcp.servers]."
            raise InvalidInput(text, hint=f"There are: {known}. With --prefix a command cannot be given.")
        return "", StdioServer(command=list(order.words))

    def configured(self, name: str, environ: Mapping[str, str]) -> WrapOrder | None:
        if name not in self._servers:
            return None
        env = {known: environ[known] for known in INHERITED if known in environ}
        return WrapOrder(words=(name,), cwd=environ.get("HOME", "/"), env=env)

    def task_id(self, answer: Any) -> str | None:
        return task_of(cast("Mapping[str, Any]", answer)) if isinstance(answer, Mapping) else None

    def report_of(self, result: Any, error: Any, tool: str) -> Report:
        if error is not None:
            return report_of_error(error, tool)
        given = cast("Mapping[str, Any]", result if isinstance(result, Mapping) else {})
        if given.get("resultType") == "input_required":
            return Report(error=needs_input(tool))
        return report_of(given)

    def threshold(self, server: str, tool: str) -> float | None:
        own = self._thresholds.get(f"{server}/{tool}", self._thresholds.get(server, self._threshold))
        return None if own == NEVER else own

    def learns(self, server: str, tool: str) -> bool:
        return not self._learned.isdisjoint((EVERY, server, f"{server}/{tool}"))
