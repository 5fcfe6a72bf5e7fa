"""The parts that Meantime.open joins, made from what it was given."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.structs import replace

from meantime.engines.local import LocalEngine
from meantime.integrations.mcp.runner import McpRunner
from meantime.integrations.mcp.servers import HttpServer, StdioServer
from meantime.kernel.argument_checks import check_all, check_map, check_path, check_text, has_methods, shown
from meantime.kernel.constraints import check_choice, check_fields, check_flag
from meantime.kernel.errors import InvalidInput
from meantime.ports.carrier import OwnerCarrier
from meantime.ports.clock import Clock
from meantime.ports.executors import NOBODY
from meantime.ports.owner import About, AgentAbout, HostCount
from meantime.ports.runner import Runner
from meantime.ports.store import Store
from meantime.ports.worker_pools import HERE
from meantime.runners.function import FunctionRunner
from meantime.runners.placed import PlacedRunner
from meantime.runners.shell.lasting_commands import LastingCommands
from meantime.runners.shell.runner import ShellRunner
from meantime.runners.watch.runner import WatchRunner
from meantime.runtime.runtime import Runtime
from meantime.runtime.settings import Settings
from meantime.stores.sqlite.store import SqliteStore
from meantime.surfaces.http.http_settings import AUTH, HttpSettings
from meantime.toolset.owner_catalog import OwnerCatalog

from .ledger_owner import LedgerOwner
from .system_clock import SystemClock

if TYPE_CHECKING:
    from meantime.client.client import Client
    from meantime.runners.agent.runner import AgentRunner
    from meantime.surfaces.socket.executor_table import ExecutorTable
    from meantime.surfaces.socket.link_server import LinkServer
    from meantime.workers.pools import WorkerPools

POLLED = 1 << 16  # bytes that are kept of the output of a command that a watch runs again and again
TURN_HEAD, TURN_RING = 16 << 20, 64 << 20  # bytes that are kept of one turn of a command-line agent


class Joined(NamedTuple):
    """The parts of an open ledger: of one that this process owns, or the client of another's owner."""

    runtime: Runtime | Client
    owner: LedgerOwner | None = None
    folder: Path | None = None  # for what lies beside the ledger
    link: LinkServer | None = None
    pools: WorkerPools | None = None


def joined(
    path: str | os.PathLike[str],
    link: str | os.PathLike[str] | None,
    *,
    durability: str = "full",
    settings: Settings | None = None,
    runners: Iterable[Runner] = (),
    servers: Mapping[str, StdioServer | HttpServer] | None = None,
    agents: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
    store: Store | None = None,
    salvage: bool = False,
    carrier: OwnerCarrier | str | None = None,
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
    agent_runners = agents_of(path, store, known, clock, settings)
    commands = commands_of(path, store, settings)
    peers = {} if servers is None else check_map(servers, "servers")
    placed: list[Runner] = [own, commands]
    pools = None
    if carrier is not None:
        from .worker_parts import pools_of

        pools = pools_of(carrier, path if remembers(store) else None, clock, settings)
        placed = [PlacedRunner(runner, pools) for runner in placed]
    polled = ShellRunner(None, grace=settings.stop_grace, head=POLLED, ring=POLLED, umask=settings.umask)
    watches = WatchRunner(clock, LastingCommands(polled), lasts=remembers(store))
    every = [*placed, McpRunner(peers, clock), *agent_runners, watches, *more]
    executors = None if shared is None else shared.executors
    runtime = Runtime(store, LocalEngine(every), clock, settings, executors or NOBODY, pools or HERE)
    watches.join(runtime.watched)
    standing, folder = About(runners=tuple(sorted(runner.kind for runner in every))), None
    standing = replace(standing, agents=about_agents(agent_runners))
    if remembers(store):
        ledger = Path(os.fsdecode(os.fspath(path))).resolve()
        folder = Path(f"{ledger}.http")
        standing = replace(standing, home=str(ledger.parent), ledger=str(ledger), durability=durability)
    about = partial(about_now, standing, runtime, executors)
    owner = LedgerOwner(about, runtime.record.notice_listeners.append)
    listener = None
    if shared is not None and link is not None:
        listener = shared.link_server(runtime, OwnerCatalog(runtime, owner), link)
    return Joined(runtime, owner, folder, listener, pools)


def about_now(standing: About, runtime: Runtime, executors: ExecutorTable | None) -> About:
    """Hosts and connected processes come and go."""
    own = runtime.pushing.hosts.items()
    hosts = [(id, host.delivery.grade, type(host).__name__) for id, host in own]
    linked = () if executors is None else executors.about()
    hosts += [] if executors is None else executors.hosts()
    counted = tuple(HostCount(*host) for host in hosts)
    return replace(
        standing,
        executors=linked,
        clients=len(linked),
        hosts=counted,
        workers=runtime.placing.about(),
        unmet=runtime.admission.unmet(),
        owner_key=runtime.placing.public_key,
    )


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
    settings = check_fields(settings)
    kept = remembers(store)
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
    from meantime.runners.agent.runner import AgentRunner

    from .agent_hosts import host_agents

    kept = remembers(store)
    root = Path(f"{Path(os.fsdecode(os.fspath(path))).resolve()}.agents") if kept else None

    def commands(folder: str) -> LastingCommands:
        """Where no command is looked for that is a task. More of their output is kept than of a command's: an
        owner that adopts one must read all of it.
        """
        place = root / folder if root else None
        grace, umask = settings.stop_grace, settings.umask
        return LastingCommands(ShellRunner(place, grace=grace, head=TURN_HEAD, ring=TURN_RING, umask=umask))

    return [AgentRunner(host_agents(agents, clock, commands), clock, root)]


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


def remembers(store: Store) -> bool:
    """False for the store in memory, which is loaded where somebody uses it: it cannot be this one before."""
    memory = sys.modules.get("meantime.stores.memory")
    return memory is None or not isinstance(store, memory.MemoryStore)


def store_of(path: str, durability: str, salvage: bool) -> Store:
    if path == ":memory:":
        from meantime.stores.memory import MemoryStore

        return MemoryStore()
    if os.path.isdir(path):
        raise InvalidInput(f"{shown(path)} is a folder.", hint="Name a file in it, such as work.db.")
    return SqliteStore(Path(path), durability, salvage=check_flag(salvage, "salvage"))
