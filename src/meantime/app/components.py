"""The parts that Meantime.open joins, made from what it was given."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.structs import replace

from meantime.engines.local import LocalEngine
from meantime.integrations.mcp.runner import McpRunner
from meantime.integrations.mcp.servers import HttpServer, StdioServer
from meantime.kernel.argument_checks import (
    check_all,
    check_choice,
    check_flag,
    check_map,
    check_path,
    check_text,
    has_methods,
    shown,
)
from meantime.kernel.errors import InvalidInput
from meantime.ports.clock import Clock
from meantime.ports.owner import About, AgentAbout
from meantime.ports.runner import Runner
from meantime.ports.store import Store
from meantime.runners.agent.runner import AgentRunner
from meantime.runners.function import FunctionRunner
from meantime.runners.shell.lasting_commands import LastingCommands
from meantime.runners.shell.runner import ShellRunner
from meantime.runtime.runtime import Runtime
from meantime.runtime.settings import Settings, check_on_close
from meantime.stores.memory import MemoryStore
from meantime.stores.sqlite.store import SqliteStore
from meantime.surfaces.http.http_settings import AUTH, HttpSettings

from .agent_hosts import employ
from .system_clock import SystemClock

if TYPE_CHECKING:
    from meantime.surfaces.socket.link_server import LinkServer

TURN_HEAD, TURN_RING = 16 << 20, 64 << 20  # bytes that are kept of one turn of a command-line agent
MAX_STOP = 86_400.0  # seconds: also a number that is none, or endless, is no time to wait


class Joined(NamedTuple):
    runtime: Runtime
    about: About
    folder: Path | None  # for what lies beside the ledger
    link: LinkServer | None


def joined(
    path: str | os.PathLike[str],
    link: str | os.PathLike[str] | None,
    *,
    durability: str,
    settings: Settings | None,
    runners: Iterable[Runner],
    servers: Mapping[str, StdioServer | HttpServer] | None,
    agents: Mapping[str, Any] | None,
    clock: Clock | None,
    store: Store | None,
    salvage: bool,
) -> Joined:
    """The arguments of `Meantime.open`, checked, and the components made from it. Nothing is opened."""
    settings = check_settings(settings)
    path = check_path(path, "path")
    link = None if link is None else check_path(link, "link")
    more = check_ports(clock, store, runners)
    clock = clock or SystemClock()
    if store is None:
        store = store_of(path, durability, salvage)
    functions = FunctionRunner(settings.max_threads)
    own, shared = functions, None
    if link is not None:
        from .link_ends import share

        shared = share(functions, clock, settings)
        own = shared.runner
    known = {} if agents is None else check_map(agents, "agents")
    employed = agents_of(path, store, known, clock, settings)
    commands = commands_of(path, store, settings)
    peers = {} if servers is None else check_map(servers, "servers")
    every = [own, commands, McpRunner(peers, clock), *employed, *more]
    runtime = Runtime(store, LocalEngine(every), clock, settings)
    listener = None
    if shared is not None and link is not None:
        listener = shared.link_server(runtime, link)
        runtime.admission.limited = listener.tell_limits
        shared.executors.keep_late = runtime.runs.keep_late
        shared.executors.inboxes.unread = runtime.waking.unread
        runtime.waking.filled = shared.executors.inboxes.tell_filled
    kinds = tuple(sorted(runner.kind for runner in every))
    about, folder = About(runners=kinds, agents=about_agents(employed)), None
    if not isinstance(store, MemoryStore):
        ledger = Path(os.fsdecode(os.fspath(path))).resolve()
        folder = Path(f"{ledger}.http")
        about = replace(about, home=str(ledger.parent), ledger=str(ledger), durability=durability)
    return Joined(runtime, about, folder, listener)


def check_settings(given: object) -> Settings:
    if given is None:
        return Settings()
    if not isinstance(given, Settings):
        raise InvalidInput(
            f"settings must be a Settings, not {type(given).__name__}.",
            hint="Write settings=Settings(max_wait=60).",
        )
    return given


def check_ports(clock: object, store: object, runners: Iterable[Runner]) -> list[Runner]:
    """Parts that a caller brings in place of our own, or beside them: the runners, in a list."""
    for what, one, methods in (
        ("clock", clock, ("now", "monotonic", "call_later")),
        ("store", store, ("open", "close", "commit", "load")),
    ):
        if one is not None and not has_methods(one, *methods):
            raise InvalidInput(f"{what} has {', '.join(methods)}; {type(one).__name__} has not.")
    given = check_all(runners, object, "runners")
    for runner in given:
        if not has_methods(runner, "run", "check"):
            raise InvalidInput(f"A runner has run and check; {type(runner).__name__} has not.")
    return cast("list[Runner]", given)


def commands_of(path: str | os.PathLike[str], store: Store, settings: Settings) -> ShellRunner:
    """Commands outlive a ledger that remembers them; they end with one that does not."""
    check_on_close(settings.on_close)
    sizes = (settings.output_head, settings.output_ring)
    if any(type(size) is not int or not 0 <= size <= 1 << 40 for size in sizes):
        raise InvalidInput("output_head and output_ring are numbers of bytes, from 0 up.")
    if type(settings.umask) is not int or not -1 <= settings.umask <= 0o777:
        raise InvalidInput("umask is a mode from 0 to 0o777, or -1 for that of this process.")
    times = (settings.stop_grace, settings.stop_deadline)
    if any(type(time) not in (int, float) or not 0 <= time < MAX_STOP for time in times):
        raise InvalidInput("stop_grace and stop_deadline are seconds, from 0 up to a day.")
    kept = not isinstance(store, MemoryStore)
    root = Path(f"{Path(os.fsdecode(os.fspath(path))).resolve()}.commands") if kept else None
    widest = [settings.inline, *settings.inline_by_name.values()]
    return ShellRunner(
        root,
        grace=settings.stop_grace,
        head=settings.output_head,
        ring=settings.output_ring,
        inline=max(limits.max_bytes for limits in widest),
        umask=settings.umask,
    )


def agents_of(
    path: str | os.PathLike[str], store: Store, agents: Mapping[str, Any], clock: Clock, settings: Settings
) -> list[AgentRunner]:
    """Their conversations are kept beside a ledger that remembers."""
    if not agents:
        return []
    kept = not isinstance(store, MemoryStore)
    root = Path(f"{Path(os.fsdecode(os.fspath(path))).resolve()}.agents") if kept else None

    def commands(folder: str) -> LastingCommands:
        """Where no command is looked for that is a task. More of their output is kept than of a command's: an
        owner that adopts one must read all of it.
        """
        place = root / folder if root else None
        grace, umask = settings.stop_grace, settings.umask
        return LastingCommands(ShellRunner(place, grace=grace, head=TURN_HEAD, ring=TURN_RING, umask=umask))

    return [AgentRunner(employ(agents, clock, commands), clock, root)]


def door_settings(
    port: int | None, host: str, auth: str, hosts: Iterable[str], allow_remote: bool
) -> HttpSettings:
    return HttpSettings(
        port=port,
        host=check_text(host, "host", 255),
        auth=check_choice(auth, "auth", AUTH),
        hosts=tuple(check_all(hosts, str, "hosts")),
        allow_remote=check_flag(allow_remote, "allow_remote"),
    )


def about_agents(runners: Iterable[AgentRunner]) -> tuple[AgentAbout, ...]:
    found = [(name, one.settings) for runner in runners for name, one in sorted(runner.agents.items())]
    return tuple(AgentAbout(name, one.runner, one.description) for name, one in found)


def store_of(path: str, durability: str, salvage: bool) -> Store:
    if path == ":memory:":
        return MemoryStore()
    if os.path.isdir(path):
        raise InvalidInput(f"{shown(path)} is a folder.", hint="Name a file in it, such as work.db.")
    return SqliteStore(Path(path), durability, salvage=check_flag(salvage, "salvage"))
