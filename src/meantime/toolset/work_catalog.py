"""How words become work, where the calls arrive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

from meantime.kernel.argument_checks import check_all, shown
from meantime.kernel.errors import InvalidInput, NotFound
from meantime.kernel.model import Task
from meantime.kernel.work import Call, Order, Orderable
from meantime.ports.owner import Catalog
from meantime.ports.tasks import Options, Tasks


class Works(Catalog, Protocol):
    """A catalog, and what a toolset needs beside it."""

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        """Refused where `commands` is False."""
        ...

    @property
    def commands(self) -> bool: ...

    @property
    def plain_commands(self) -> bool:
        """Whether commands run as the owner itself runs them. Only there may a watch run a command, or read
        a file: it does so as the owner."""
        ...

    async def server_tools(self) -> Sequence[str]:
        """The tools of the MCP servers that the owner has, as "server/tool". The servers are asked, which may
        start them: so these are not offered, and only looked for when somebody asks."""
        ...

    def tool(self, name: str, arguments: dict[str, Any]) -> Order:
        """For a call that waits for its result; where it cannot be ordered from here, it is refused."""
        ...


class GivenWorks:
    """The work that a program lets its agent start: agents by name, functions of its own, and commands only
    where it hands over what makes them (`Shell`).
    """

    def __init__(
        self,
        tasks: Tasks,
        agents: Sequence[str] | Mapping[str, str] | None = (),
        tools: Mapping[str, Callable[..., Any]] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
    ) -> None:
        _check_given(tools, commands)
        self._tasks = tasks
        self._agents = None if agents is None else _purposes(agents)
        self._tools = dict(tools or {})
        self._commands = commands

    @property
    def commands(self) -> bool:
        return self._commands is not None

    @property
    def plain_commands(self) -> bool:
        return getattr(self._commands, "__dict__", {}).get("_runs_plainly") is True

    async def agents(self) -> Mapping[str, str] | None:
        return self._agents

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        if self._commands is None:
            raise InvalidInput("Commands are not allowed here.")
        return self._commands(command, cwd=cwd, open_stdin=open_stdin).order()

    async def registered_tools(self) -> Sequence[str]:
        return sorted(self._tools)

    async def server_tools(self) -> Sequence[str]:
        return ()  # a program hands over what its agent may start

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Any], options: Options) -> Task:
        return await self._tasks.start(thread, self.tool(name, arguments), options)

    def tool(self, name: str, arguments: dict[str, Any]) -> Order:
        found = self._tools.get(name)
        if found is None:
            there = ", ".join(sorted(self._tools)) or "none"
            raise NotFound(f"There is no tool {name[:100]!r} to start.", hint=f"There are: {there}.")
        strange = next((key for key in arguments if not key.isidentifier()), None)
        if strange is not None:
            raise InvalidInput(f"arguments: {strange[:40]!r} is not a name.")
        _check(found, name, arguments)
        return Call(found, **arguments).order()


def _check_given(tools: object, commands: object) -> None:
    """A program's own mistake is told to the program: later it would be told to a model."""
    if tools is not None and not isinstance(tools, Mapping):
        what = f"tools is a mapping of names to functions, not {type(tools).__name__}."
        raise InvalidInput(what, hint='Use tools={"add": add}.')
    for name, function in cast("Mapping[object, object]", tools or {}).items():
        if not isinstance(name, str) or not callable(function):
            what = f"tools maps names to functions: {shown(name)} to {type(function).__name__} is none."
            raise InvalidInput(what, hint='Use tools={"add": add}.')
    if commands is not None and not callable(commands):
        what = f"commands is what makes them, not {shown(commands)}."
        raise InvalidInput(what, hint="Use commands=Shell, with Shell from meantime; None allows none.")


def _purposes(agents: Sequence[str] | Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(agents, Mapping):
        return dict.fromkeys(names_of(agents, "agents"), "")
    names_of(list(agents), "agents")
    check_all(list(agents.values()), str, "what agents are for")
    return agents


def names_of(given: object, what: str) -> list[str]:
    """A single text would be taken letter by letter."""
    if isinstance(given, str):
        raise InvalidInput(f"{what} is a list of names, not a text.", hint=f"Use {what}=[{shown(given)}].")
    return check_all(given, str, what)


def _check(function: Callable[..., Any], name: str, arguments: dict[str, Any]) -> None:
    """A wrong argument is refused before anything is recorded."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # written in C, and does not say what it takes
        return
    try:
        signature.bind(**arguments)
    except TypeError as problem:
        raise InvalidInput(f"{name}{signature}: {problem}.") from None
