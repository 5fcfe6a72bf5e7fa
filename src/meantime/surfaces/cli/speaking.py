"""HTTP over the daemon's unix socket, with the standard library: it is on the way of every verb."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from .trouble import NO_DAEMON, Gone, Refused, Trouble

if TYPE_CHECKING:
    from meantime.home import Home

PATIENCE = 30.0  # seconds for an answer that waits for nothing
_ABSENT = (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)


class Daemon:
    """One connection, opened with the first question. A daemon that does not run is started."""

    def __init__(self, home: Home | None = None, *, start: bool | None = None) -> None:
        self.home = home or _home()
        self.start = not os.environ.get("MEANTIME_NO_START") if start is None else start
        self._line: _Line | None = None

    def get(self, path: str, *, patience: float = PATIENCE, **params: object) -> Any:
        """The JSON of an answer; None of one without content. Refused for an error, Gone for no answer."""
        return self._asked("GET", _with(path, params), None, patience)

    def post(self, path: str, body: object = None, *, patience: float = PATIENCE) -> Any:
        """Never sent twice: whoever may repeat it knows why."""
        return self._asked("POST", path, {} if body is None else body, patience)

    @contextmanager
    def stream(
        self,
        path: str,
        *,
        patience: float | None = None,
        headers: dict[str, str] | None = None,
        **params: object,
    ) -> Generator[HTTPResponse]:
        """An answer that goes on, on a connection of its own. Gone, also where it breaks off."""
        line = self._connected(patience)
        try:
            answer = _exchange(line, "GET", _with(path, params), None, headers)
            _check(answer.status, answer.read() if answer.status >= 400 else b"")
            yield answer
        except (HTTPException, OSError) as problem:
            raise _gone(problem) from problem
        finally:
            line.close()

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _asked(self, method: str, path: str, body: object, patience: float) -> Any:
        kept = self._line is not None
        try:
            return self._ask(method, path, body, patience)
        except Gone:
            if not (kept and method == "GET"):
                raise
        return self._ask(method, path, body, patience)  # it had only closed a connection that was idle

    def _ask(self, method: str, path: str, body: object, patience: float) -> Any:
        line = self._line = self._line or self._connected(patience)
        try:
            if line.sock is not None:
                line.sock.settimeout(patience)
            answer = _exchange(line, method, path, body)
            data = answer.read()
        except (HTTPException, OSError) as problem:
            self.close()
            raise _gone(problem) from problem
        except BaseException:  # half an answer is still on its way
            self.close()
            raise
        if answer.will_close:
            self.close()
        _check(answer.status, data)
        return json.loads(data) if data else None

    def _connected(self, patience: float | None) -> _Line:
        line = _Line(str(self.home.http_socket), patience)
        try:
            line.connect()
        except _ABSENT:
            self._begin()
            line.connect()
        except PermissionError as problem:
            raise Trouble(
                f"{self.home.http_socket} belongs to somebody else.",
                "Set MEANTIME_HOME to a folder of your own.",
                4,
            ) from problem
        return line

    def _begin(self) -> None:
        if not self.start:
            raise Trouble("The daemon is not running.", "Start it with `meantime up`.", NO_DAEMON)
        from meantime.ondemand import NoDaemon, ensure

        try:
            ensure(self.home)
        except NoDaemon as problem:
            raise Trouble(problem.message, problem.hint, NO_DAEMON) from problem


class _Line(HTTPConnection):
    def __init__(self, path: str, patience: float | None) -> None:
        super().__init__("meantime", timeout=patience)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        except BaseException:
            self.close()
            raise


def _home() -> Home:
    from meantime.home import BadHome, home

    try:
        return home()
    except BadHome as problem:
        raise Trouble(problem.message, problem.hint, NO_DAEMON) from problem


def part(id: str) -> str:
    """An id as a part of a path."""
    return quote(id, safe="")


def _with(path: str, params: dict[str, object]) -> str:
    given = {name: value for name, value in params.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def _exchange(
    line: _Line, method: str, path: str, body: object, headers: dict[str, str] | None = None
) -> HTTPResponse:
    if body is None:
        line.request(method, path, headers=headers or {})
    else:
        line.request(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return line.getresponse()


def _check(status: int, data: bytes) -> None:
    if status < 400:
        return
    refused = Refused(status, _object(data))
    raise Gone("The daemon is closing.") if refused.code == "closed" else refused


def _object(data: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(data)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _gone(problem: Exception) -> Gone:
    if isinstance(problem, TimeoutError):
        return Gone("The daemon does not answer.")
    return Gone()
