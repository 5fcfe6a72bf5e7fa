"""A verb, declared once: its words as data, and its body.

`plain_argv.py` reads ordinary calls by this declaration. `click_commands.py` makes a click command of it,
for help, completion, errors and everything else that is not ordinary: to load click takes as long as Python
itself. So nothing that a verb needs for its work may load click.
"""

from __future__ import annotations

import json

from meantime.surfaces.terminal.std_streams import echo

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from meantime.surfaces.daemon_client.daemon_client import Daemon

    Body = Callable[..., Any]
    Decorator = Callable[[Body], Body]


class Parameter:
    """An option or an argument, in the words that click has for them."""

    def __init__(self, names: tuple[str, ...], settings: dict[str, Any], *, is_argument: bool) -> None:
        self.flags = tuple(name for name in names if name.startswith("-"))
        self.settings = settings
        self.is_argument = is_argument
        said = [name for name in names if name not in self.flags]
        long = [flag for flag in self.flags if flag.startswith("--")]
        self.dest = (said or long or self.flags)[0].lstrip("-").replace("-", "_")


class Verb:
    """`body` is called with its parameters by name. It returns the exit code; None is 0."""

    def __init__(self, name: str, body: Body, parameters: list[Parameter], settings: dict[str, Any]) -> None:
        self.name = name
        self.body = body
        self.parameters = parameters
        self.settings = settings  # of click's context

    def perform(self, given: dict[str, Any]) -> int:
        _this_call.no_start = given.pop(NO_START.dest, False)
        try:
            code = self.body(**given)
        finally:
            _this_call.close()
        return code if isinstance(code, int) else 0


NO_START = Parameter(
    ("--no-start",),
    {"is_flag": True, "help": "Do not start the daemon if it is not running (exit 5)."},
    is_argument=False,
)


def verb(name: str, *, starts: bool = True, **settings: Any) -> Callable[[Body], Verb]:
    """Makes a verb of the function below. One that `starts` the daemon also knows `--no-start`; `settings`
    are of click's context."""

    def made(body: Body) -> Verb:
        declared: list[Parameter] = body.__dict__.pop("parameters", [])
        return Verb(name, body, [*declared, *([NO_START] if starts else [])], settings)

    return made


def option(*names: str, **settings: Any) -> Decorator:
    """`names` are its flags, and the body's name for it where that is another. `type` is one of
    parameter_types.py; all else is as in click."""
    return _declared(Parameter(names, settings, is_argument=False))


def argument(name: str, **settings: Any) -> Decorator:
    return _declared(Parameter((name,), settings, is_argument=True))


def _declared(parameter: Parameter) -> Decorator:
    def noted(body: Body) -> Body:
        body.__dict__.setdefault("parameters", []).insert(0, parameter)  # the lowest is noted first
        return body

    return noted


class _Call:
    """The one call of this process: whether it may start the daemon, and what it has opened."""

    def __init__(self) -> None:
        self.no_start = False
        self._open: list[Daemon] = []

    def daemon(self) -> Daemon:
        from meantime.surfaces.daemon_client.daemon_client import Daemon  # `mcp` and hooks need none

        self._open.append(Daemon(start=False if self.no_start else None))
        return self._open[-1]

    def close(self) -> None:
        while self._open:
            self._open.pop().close()


_this_call = _Call()
daemon = _this_call.daemon  # the one of this call, closed when it ends
as_json = option("--json", "as_json", is_flag=True, help="JSON, in the shape of the HTTP API.")


def say_json(value: object) -> None:
    echo(json.dumps(value, ensure_ascii=False))
