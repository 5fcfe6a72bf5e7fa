"""Questions to the daemon, over its unix socket. Every verb loads this, so it loads little itself."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

from meantime.surfaces.terminal.errors import NO_DAEMON, NOT_ALLOWED, CliError, DaemonGone, DaemonRefused

from .daemon_connection import Arriving, DaemonConnection, going, gone

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from meantime.daemon.home import Home

PATIENCE = 30.0  # seconds for an answer that waits for nothing
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ABSENT = (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)


class Daemon:
    """One connection, opened with the first question. A daemon that does not run is started; one that
    was there and has gone is not: somebody may have stopped it on purpose."""

    def __init__(self, home: Home | None = None, *, start: bool | None = None) -> None:
        self.home = home or _home()
        self.start = os.environ.get("MEANTIME_NO_START", "") in ("", "0") if start is None else start
        self._line: DaemonConnection | None = None
        self._met = False

    def get(self, path: str, *, patience: float = PATIENCE, **params: object) -> Any:
        """The JSON of an answer; None of one without content. Refused for an error, Gone for no answer."""
        return self._response("GET", _with(path, params), None, patience)

    def post(self, path: str, body: object = None, *, patience: float = PATIENCE) -> Any:
        """Never sent twice: whoever may repeat it knows why."""
        return self._response("POST", path, {} if body is None else body, patience)

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        patience: float | None = None,
        headers: dict[str, str] | None = None,
        **params: object,
    ) -> Generator[Arriving]:
        """An answer that goes on, on a connection of its own. Gone, even if it breaks off."""
        line = self._connected(patience)
        try:
            with going():
                answer = line.exchange("GET", _with(path, params), headers=headers)
                refused = answer.read() if answer.status >= 400 else b""
            _check(answer.status, refused)
            yield Arriving(answer)
        finally:
            line.close()

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _response(self, method: str, path: str, body: object, patience: float) -> Any:
        kept = self._line is not None
        try:
            return self._request(method, path, body, patience)
        except DaemonGone:
            if not (kept and method == "GET"):
                raise
        return self._request(method, path, body, patience)  # it had only closed a connection that was idle

    def _request(self, method: str, path: str, body: object, patience: float) -> Any:
        if self._line is not None and self._line.was_closed():
            self.close()
        line = self._line = self._line or self._connected(patience)
        try:
            with going():
                line.sock.settimeout(patience)
                answer = line.exchange(method, path, None if body is None else json.dumps(body).encode())
                data = answer.read()
        except BaseException:  # half an answer may still be on its way
            self.close()
            raise
        if answer.will_close:
            self.close()
        _check(answer.status, data)
        return json.loads(data) if data else None

    def _connected(self, patience: float | None) -> DaemonConnection:
        line = DaemonConnection(self.home.http_address, patience)
        try:
            line.connect()
        except _ABSENT:
            self._begin()
            with going():
                line.connect()
        except PermissionError as problem:
            what = f"{self.home.http_address} belongs to somebody else."
            raise CliError(what, "Set MEANTIME_HOME to a folder of your own.", NOT_ALLOWED) from problem
        except OSError as problem:
            raise gone(problem) from problem
        self._met = True
        return line

    def _begin(self) -> None:
        if self._met:
            raise DaemonGone
        if not self.start:
            raise CliError("The daemon is not running.", "Start it with `meantime up`.", NO_DAEMON)
        from meantime.daemon.daemon_autostart import NoDaemon, ensure

        try:
            ensure(self.home)
        except NoDaemon as problem:
            raise CliError(problem.message, problem.hint, NO_DAEMON) from problem


def _home() -> Home:
    from meantime.daemon.home import BadHome, home

    try:
        return home()
    except BadHome as problem:
        raise CliError(problem.message, problem.hint, NO_DAEMON) from problem


def part(text: str) -> str:
    """An id, or any other text, as a part of a path or a query."""
    data = text.encode(errors="replace")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in data)


def _with(path: str, params: dict[str, object]) -> str:
    given = [(name, str(value)) for name, value in params.items() if value is not None and value != ""]
    return f"{path}?{'&'.join(f'{part(name)}={part(value)}' for name, value in given)}" if given else path


def _check(status: int, data: bytes) -> None:
    if status < 400:
        return
    refused = DaemonRefused(status, _object(data))
    raise DaemonGone("The daemon is closing.") if refused.code == "closed" else refused


def _object(data: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(data)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
