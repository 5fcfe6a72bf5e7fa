"""How words become work, where the calls arrive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from meantime.kernel.errors import InvalidInput, NotFound
from meantime.kernel.model import Task
from meantime.kernel.work import Call, Order, Orderable
from meantime.ports.tasks import Options, Tasks


class Works(Protocol):
    async def agents(self) -> Mapping[str, str] | None:
        """By name, with what each is for; empty is any name, None is no runner for agents."""
        ...

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        """Refused where `commands` is False."""
        ...

    @property
    def commands(self) -> bool: ...

    async def tools(self) -> Sequence[str]:
        """The registered ones, by name."""
        ...

    async def server_tools(self) -> Sequence[str]:
        """Those of the MCP servers that the owner has, as "server/tool". The servers are asked, which may
        start them: so these are not offered, and only looked for when somebody asks."""
        ...

    async def start_tool(
        self, thread: str, name: str, arguments: dict[str, Any], options: Options
    ) -> Task: ...

    def tool(self, name: str, arguments: dict[str, Any]) -> Order:
        """For a call that waits for its result; where it cannot be ordered from here, it is refused."""
        ...


class GivenWorks:
    """What a program lets its agent start: agents by name, functions of its own, and commands only where
    it hands over what makes them (`Shell`)."""

    def __init__(
        self,
        tasks: Tasks,
        agents: Sequence[str] | Mapping[str, str] | None = (),
        tools: Mapping[str, Callable[..., Any]] | None = None,
        commands: Callable[..., Orderable] | None = None,
    ) -> None:
        self._tasks = tasks
        self._agents = agents if agents is None or isinstance(agents, Mapping) else dict.fromkeys(agents, "")
        self._tools = dict(tools or {})
        self._commands = commands

    @property
    def commands(self) -> bool:
        return self._commands is not None

    async def agents(self) -> Mapping[str, str] | None:
        return self._agents

    def command(self, command: str | Sequence[str], *, cwd: str | None, open_stdin: bool) -> Order:
        if self._commands is None:
            raise InvalidInput("Commands are not allowed here.")
        return self._commands(command, cwd=cwd, open_stdin=open_stdin).order()

    async def tools(self) -> Sequence[str]:
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
