"""The program that owns the ledger, as a server may know it: the work that it can run, and its state.

A wire carries words. Which function or command they mean is known to the owner alone, so a server asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from meantime.kernel.model import Json, Task
from meantime.kernel.work import Order

from .tasks import Options
from .worker_pools import UnmetNeed, WorkerAbout


class HostCount(Struct, frozen=True):
    """A host that is pushed to: its thread, and what it can promise (A, B or C of ports/host.py)."""

    thread: str
    grade: str
    kind: str


class AgentAbout(Struct, frozen=True):
    """An agent that can be started by its name."""

    name: str
    runner: str
    description: str = ""


class About(Struct, frozen=True, kw_only=True):
    """Where the owner keeps its ledger, and what it has."""

    home: str = ""  # the folder of the ledger; empty where it is kept in memory
    ledger: str = ""
    durability: str = "memory"
    runners: tuple[str, ...] = ()  # kinds of work
    agents: tuple[AgentAbout, ...] = ()
    hosts: tuple[HostCount, ...] = ()
    executors: tuple[dict[str, Json], ...] = ()  # id, pid and runs of each process that runs work for it
    workers: tuple[WorkerAbout, ...] = ()  # on other machines
    unmet: tuple[UnmetNeed, ...] = ()  # work that waits, and that none of them can perform
    owner_key: str = ""  # which they pin
    clients: int = 0  # programs that are linked to it


class Catalog(Protocol):
    """The work that the owner starts by its name, for programs that have no more than the name. The link
    carries it."""

    async def agents(self) -> Mapping[str, str] | None:
        """By name, with what each is for; empty is any name, None that no runner has agents."""
        ...

    async def registered_tools(self) -> Sequence[str]:
        """The names of functions that can be started."""
        ...

    async def start_tool(self, thread: str, name: str, arguments: dict[str, Json], options: Options) -> Task:
        """Starts a registered function, or a tool of an MCP server ("server/tool"). Raises NotFound, listing
        those there are, for another name."""
        ...


class Owner(Protocol):
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
        """A text goes to /bin/sh, a list is started as it is. `env` is added to `environment`, which is
        the owner's own where none is given."""
        ...

    def tool(self, name: str, arguments: dict[str, Json]) -> Order:
        """A registered function by its name; NotFound, with those there are, if there is none."""
        ...

    def tools(self) -> Sequence[str]: ...

    def about(self) -> About: ...

    def watch_notices(self, listener: Callable[[str], None], /) -> None:
        """Calls the listener with a thread before a notice for it becomes unread, and again once it is."""
        ...
