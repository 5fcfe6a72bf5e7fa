"""Access to an open Meantime for its servers, and the translation of their requests into orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from meantime.kernel.argument_checks import check_all, check_map, check_text
from meantime.kernel.errors import InvalidInput, NotFound
from meantime.kernel.model import Json
from meantime.kernel.work import Call, Order, Tool
from meantime.ports.owner import About
from meantime.runners.background_function import REGISTRY, BackgroundFunction
from meantime.runners.shell import command_validation
from meantime.runners.shell.shell_work import Shell

MOST_NAME = 1_000  # characters of a tool's name


class LedgerOwner:
    """`about` is asked every time: hosts and clients come and go. `watch_notices` is that of ports/owner.py;
    a process that is connected to an owner has none to watch."""

    def __init__(
        self,
        about: Callable[[], About],
        watch_notices: Callable[[Callable[[str], None]], None] = lambda listener: None,
    ) -> None:
        self.about = about
        self.watch_notices = watch_notices

    def command(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        environment: dict[str, str] | None = None,
        stdin: str | None = None,
        open_stdin: bool = False,
        pty: bool = False,
        merge: bool = False,
    ) -> Order:
        work = Shell(command, cwd=cwd, env=env, stdin=stdin, open_stdin=open_stdin, pty=pty, merge=merge)
        command_validation.environment(environment)  # checked like any other
        return work.order().with_environment(environment)

    def tool(self, name: str, arguments: dict[str, Json]) -> Order:
        name, arguments = check_text(name, "name", MOST_NAME), check_map(arguments, "arguments")
        check_all(list(arguments), str, "names of arguments")
        found = _named().get(name) or REGISTRY.get(name)
        if found is None and "/" in name:  # of an MCP server: its runner knows which there are
            return Tool(name, arguments).order()
        if found is None:
            there = ", ".join(self.tools()) or "none; decorate functions with @background"
            raise NotFound(f"No tool {name[:128]!r} is registered here.", hint=f"There are: {there}.")
        strange = next((key for key in arguments if not key.isidentifier()), None)
        if strange is not None:
            raise InvalidInput(f"arguments: {strange[:40]!r} is not a name.")
        found.check((), arguments)
        return Call(found, **arguments).order()

    def tools(self) -> Sequence[str]:
        """By their own names; where two functions have the same, by module and name."""
        return sorted(_named())


def _named() -> dict[str, BackgroundFunction[..., Any]]:
    taken = Counter(function.name for function in REGISTRY.values())
    return {
        function.name if taken[function.name] == 1 else whole: function
        for whole, function in REGISTRY.items()
    }
