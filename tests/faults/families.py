"""Every family of faults: how it is played, how much of it, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from . import (
    adapters,
    agentruns,
    damage,
    disk,
    filling,
    hostile,
    jumps,
    kills,
    launches,
    links,
    machine,
    mcp_clients,
    mcp_servers,
    notifications,
    orphans,
    posts,
    power,
    quiet,
    reminders,
    scarce,
    schedules,
    sources,
    strace,
    toolcalls,
    verbs,
    versions,
    watches,
    wrap_hostility,
    wrap_urls,
    wraps,
)
from .judge import Tally
from .workers import brokers, play

SEED = "MEANTIME_FAULT_SEED"


def nothing() -> str:
    return ""


class Family(NamedTuple):
    """`play` takes a seed, the sizes, and how to repeat it. `whole` is for `make faults`, `part` for every
    `make test-all`. `missing` says why it cannot be played here, or nothing."""

    name: str
    title: str
    play: Callable[..., Tally]
    whole: tuple[int, ...]
    part: tuple[int, ...]
    missing: Callable[[], str] = nothing


FAMILIES = (
    Family("1", "state machine with crashes", machine.run, (80, 40), (12, 30)),
    Family("2", "kill at swept system calls", kills.sweep, (84, 28), (4, 2), strace.missing),
    Family("3", "kill at random moments under load", kills.at_random, (6, 4), (2, 2)),
    Family("4", "full and failing disk", disk.run, (24,), (3,), strace.missing),
    Family("slow", "slow disk", disk.slow, (6,), (1,), strace.missing),
    Family("power", "power cuts under load", power.run, (3, 3), (1, 1), power.missing),
    Family("5", "seeded event loop schedules", schedules.run, (600,), (40,)),
    Family("6", "hostile process trees", hostile.run, (0,), (10,)),
    Family("7", "kill of owners of running commands", orphans.at_random, (6, 4), (2, 1)),
    Family("7b", "kill in a command's start", launches.sweep, (28,), (2,), strace.missing),
    Family("9", "kill of owners and servers of MCP calls", toolcalls.at_random, (6, 4), (2, 1)),
    Family("agents", "kill in agents' runs", agentruns.sweep, (60,), (3,), strace.missing),
    Family("link-daemons", "kill of the daemon under load on the link", links.daemons, (4, 5), (1, 1)),
    Family("link-stops", "SIGSTOP of the daemon under load", links.stops, (3, 3), (1, 1)),
    Family(
        "link-jumps",
        "jumps of the wall clock under load",
        jumps.run,
        (3, 6),
        (1, 2),
        jumps.missing,
    ),
    Family("link-executors", "kill of executors under load", links.executors, (4, 6), (1, 1)),
    Family("link-cuts", "connections cut with turns open", links.cuts, (4, 50), (1, 10)),
    Family("writes", "kill in each write over HTTP", posts.sweep, (48,), (2,), strace.missing),
    Family("quiet", "kill around a hook's quiet file", quiet.sweep, (40,), (1,), strace.missing),
    Family("mcp-clients", "hostile clients of the MCP server", mcp_clients.run, (0,), (5,)),
    Family("mcp-servers", "hostile MCP servers", mcp_servers.run, (0,), (3,)),
    Family("wrap", "kill of host, wrap, daemon, wrapped server", wraps.run, (6, 12), (2, 3)),
    Family("url-wrap", "kill of URL host, daemon, wrapped server", wrap_urls.run, (6, 9), (1, 3)),
    Family("hostile-wrap", "hostile servers behind a wrap", wrap_hostility.run, (6, 15), (1, 3)),
    Family("notify", "kill while work tells before its end", notifications.run, (10, 5), (2, 2)),
    Family("watch", "kill while watches find something", watches.run, (10, 6), (2, 2)),
    Family(
        "sources",
        "kill in each write of notices that are not endings",
        sources.sweep,
        (60, 20),
        (3, 1),
        strace.missing,
    ),
    Family(
        "adapters",
        "kill of agents of frameworks that talk",
        adapters.run,
        (20,),
        (2,),
        adapters.missing,
    ),
    Family(
        "remind",
        "kill while reminders are set, come and are cancelled",
        reminders.run,
        (40, 10, 4),
        (2, 2, 2),
        strace.missing,
    ),
    Family("scarce", "a daemon without descriptors", scarce.run, (8,), (2,)),
    Family("damage", "damage to every file of a ledger", damage.run, (520,), (8,)),
    Family("versions", "an older version beside this one", versions.run, (6,), (1,), versions.missing),
    Family("full", "full disk of a daemon", filling.run, (5,), (1,), filling.missing),
    Family("workers-memory", "workers, broker that loses messages", play.memory, (2_000, 100), (12, 0)),
    Family("workers-nats", "workers over NATS", play.nats, (2_000, 100), (60, 5), brokers.nats_missing),
    Family(
        "workers-postgres",
        "workers over PostgreSQL",
        play.postgres,
        (2_000, 100),
        (60, 5),
        brokers.postgres_missing,
    ),
    Family(
        "workers-cluster",
        "workers over three NATS servers",
        play.cluster,
        (500, 100),
        (40, 5),
        brokers.nats_missing,
    ),
    Family("verbs", "hostile values in every verb", verbs.run, (50_000,), (1_000,)),
)
