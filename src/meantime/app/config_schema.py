"""Everything that can be configured: one struct a section, one line a key. The defaults are here alone.

A key is `section.name`; its environment variable is MEANTIME_SECTION_NAME. How the values are found,
and how a wrong one is reported, is in config_sources.py.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.constraints import (
    AGE,
    COUNT,
    DEPTH,
    FLAG,
    LIMIT,
    SIZE,
    TEXT,
    TEXTS,
    TIMEOUT,
    one_of,
    seconds,
    whole,
)
from meantime.kernel.event_notices import NoticeRate
from meantime.kernel.limits import Limits, PluginDefaults, Retention
from meantime.kernel.model import InlineLimits
from meantime.kernel.wake_budget import WakeBudget
from meantime.runtime.settings import Settings
from meantime.surfaces.http.http_settings import HttpSettings

from .config_constraints import (
    AGENTS,
    INLINE_BY_NAME,
    LABELS,
    LIMITS,
    OPTIONAL_TEXT,
    PAUSE,
    PLACES,
    SERVERS,
    STOP,
    THRESHOLD,
    THRESHOLDS,
)


class LimitsSection(Struct, frozen=True):
    """How much may run at once."""

    per_thread: Annotated[int, LIMIT, "running tasks of one kind in one thread"] = 10
    total: Annotated[int, LIMIT, "running tasks in all"] = 50
    per_kind: Annotated[
        dict[str, int],
        LIMITS,
        "in place of per_thread for some kinds, such as { shell = 4 }",
    ] = {}
    queued: Annotated[int, LIMIT, "tasks that may wait for a slot"] = 100_000
    on_limit: Annotated[str, one_of("queue", "reject"), "what happens to a start that is over a limit"] = (
        "queue"
    )
    depth: Annotated[int, DEPTH, "how deep work may start work"] = -1
    reminders: Annotated[int, LIMIT, "reminders that are still to come, in all"] = 100_000
    reminders_per_thread: Annotated[int, LIMIT, "reminders of one thread that are still to come"] = 1_000


class AgentsSection(Struct, frozen=True):
    """Subagents. Each has a table of its own: [agents.NAME]."""

    task_max_async: Annotated[int, LIMIT, "running subagents in one thread (task-max-async)"] = 5
    named: Annotated[
        dict[str, dict[str, Any]],
        AGENTS,
        "every [agents.NAME], with its runner and what docs/guides/subagents.md lists",
    ] = {}


class TimeoutsSection(Struct, frozen=True):
    """How long things may take."""

    default: Annotated[float, TIMEOUT, "for a start that names no timeout"] = -1
    maximum: Annotated[float, TIMEOUT, "no start gets more"] = -1
    stop_grace: Annotated[float, STOP, "between asking a run to stop and killing it"] = 5.0
    stop_deadline: Annotated[float, STOP, "after which a run that will not stop is left behind"] = 10.0
    max_wait: Annotated[float, AGE, "the longest that reading an output waits"] = 600.0


class InlineSection(Struct, frozen=True):
    """Limits for a payload in a message; a larger one is put into a file."""

    max_bytes: Annotated[int, SIZE, "bytes of a payload"] = 51_200
    max_lines: Annotated[int, SIZE, "lines of a payload"] = 1_000
    by_name: Annotated[
        dict[str, dict[str, int]],
        INLINE_BY_NAME,
        "for work of some names, such as { crawl = { max_lines = 50 } }",
    ] = {}


class RetentionSection(Struct, frozen=True):
    """How much is kept, and for how long. Untold notices are never forgotten."""

    hot: Annotated[int, SIZE, "ended tasks that a thread lists"] = 20
    history_seconds: Annotated[float, AGE, "how long told endings stay in the ledger"] = 30 * 86_400.0
    history_tasks: Annotated[int, COUNT, "and how many of them"] = 200_000
    journal_events: Annotated[int, COUNT, "events in the journal"] = 100_000
    told_events: Annotated[int, COUNT, "told events of one task before its end"] = 1_000
    unclaimed_seconds: Annotated[
        float, AGE, "after which notices of a thread that nobody serves are parked"
    ] = 7 * 86_400.0


class OutputSection(Struct, frozen=True):
    """How much of a command's stdout, and of its stderr, is kept."""

    head: Annotated[int, SIZE, "bytes at the beginning"] = 1 << 20
    ring: Annotated[int, SIZE, "bytes at the end"] = 4 << 20


class LedgerSection(Struct, frozen=True):
    """The database."""

    durability: Annotated[str, one_of("full", "fast"), "full survives a power cut, fast a crash only"] = (
        "full"
    )


class RuntimeSection(Struct, frozen=True):
    """The runtime."""

    on_close: Annotated[
        str,
        one_of("keep", "stop"),
        "what SIGTERM means for running commands; `meantime down` keeps or stops as you say",
    ] = "keep"
    parks_after: Annotated[int, COUNT, "failed deliveries after which a notice is parked"] = 5
    reconcile_every: Annotated[float, PAUSE, "seconds: the longest that a missed wake lasts"] = 5.0
    progress_every: Annotated[float, STOP, "seconds between two writes of one run's progress"] = 0.25
    upkeep_every: Annotated[float, PAUSE, "seconds between two clean-ups"] = 3600.0
    max_threads: Annotated[int, whole(1, 10_000), "worker threads for functions that are not async"] = 256


class WakesSection(Struct, frozen=True):
    """How often a thread is woken by work that it started when it was woken; a person's turn ends that."""

    rounds: Annotated[int, LIMIT, "of being woken, starting something, and being woken by it"] = 120
    seconds: Annotated[float, PAUSE, "in which so many may be; over it, each wake waits longer"] = 300.0
    longest: Annotated[float, PAUSE, "seconds that one wake waits at most"] = 60.0


class NoticesSection(Struct, frozen=True):
    """How often one task may tell its conversation something before it ends; the rest is told together."""

    seconds: Annotated[float, PAUSE, "between two notices of one task"] = 1.0
    per_minute: Annotated[int, whole(1, 1_000), "notices of one task in a minute"] = 30


class HttpSection(Struct, frozen=True):
    """The HTTP server on a port. The socket in the home folder is always open."""

    enabled: Annotated[bool, FLAG, "whether HTTP is served on a port"] = True
    host: Annotated[str, TEXT, "the address it listens on"] = "127.0.0.1"
    port: Annotated[int, whole(0, 65_535), "the first of ten to try; 0 is the system's choice"] = 5165
    auth: Annotated[
        str, one_of("peer", "strict"), "peer lets your own programs read without a token; strict does not"
    ] = "peer"
    hosts: Annotated[list[str], TEXTS, "more names that clients may know it by"] = []
    allow_remote: Annotated[bool, FLAG, "allow an address that other machines can reach"] = False
    clients: Annotated[int, COUNT, "event streams at once"] = 64
    backlog: Annotated[int, COUNT, "events that a slow stream may be behind"] = 256
    heartbeat: Annotated[float, PAUSE, "seconds of silence on a stream"] = 30.0
    batch: Annotated[float, seconds(0, 60), "seconds in which changes of one task become one event"] = 0.1
    header_seconds: Annotated[float, PAUSE, "for a request's head to arrive"] = 10.0
    header_bytes: Annotated[int, whole(1024, 1 << 24), "the longest head of a request"] = 65_536
    body_bytes: Annotated[int, whole(0, 1 << 30), "the longest body of a request"] = 1_000_000
    body_seconds: Annotated[float, PAUSE, "for a request's body to arrive"] = 30.0
    waiting: Annotated[int, COUNT, "requests that wait for something at once"] = 256
    stall_seconds: Annotated[float, PAUSE, "that a client may take nothing of its answer"] = 30.0
    connections: Annotated[int, COUNT, "connections at once"] = 512
    stop_seconds: Annotated[float, seconds(0, 600), "that answers under way have when it stops"] = 5.0


class ExecutorsSection(Struct, frozen=True):
    """Processes that run work for the daemon."""

    lease: Annotated[float, PAUSE, "seconds without a sign of life after which one counts as gone"] = 60.0
    grace: Annotated[float, AGE, "seconds that one has to come back before its runs are lost"] = 30.0


class McpSection(Struct, frozen=True):
    """MCP servers whose tools can be started as tasks: [mcp.servers.NAME]."""

    servers: Annotated[
        dict[str, dict[str, Any]], SERVERS, 'by name, such as { files = { command = ["my-server"] } }'
    ] = {}
    wrap_threshold: Annotated[
        float, THRESHOLD, "seconds after which a call of a wrapped server goes to the background; -1 never"
    ] = 10.0
    wrap_thresholds: Annotated[
        dict[str, float], THRESHOLDS, 'the same by server or tool, such as { "files/search" = 30 }'
    ] = {}
    wrap_learn: Annotated[
        list[str],
        TEXTS,
        'servers or tools, or "*", that go to the background at once where they usually take longer',
    ] = []


class PluginsSection(Struct, frozen=True):
    """Tools of plugins: seed 003's BackgroundConfig."""

    max_concurrent_tasks: Annotated[int, LIMIT, "running tasks over all plugins"] = 10
    default_timeout_seconds: Annotated[float, TIMEOUT, "for a task that names no timeout"] = 300.0
    completed_task_retention_seconds: Annotated[float, AGE, "how long ended tasks are kept"] = 3600.0
    background_threshold_seconds: Annotated[
        float, AGE, "estimates over this advise a model to use the background"
    ] = 10.0


class EngineSection(Struct, frozen=True):
    """Workers on other machines, and the work that they get."""

    carrier: Annotated[
        str,
        OPTIONAL_TEXT,
        "nats://…, tls://… or postgres://… with the owner's login, or local; empty: no workers",
    ] = ""
    listen: Annotated[
        str,
        OPTIONAL_TEXT,
        'address, or address:port, at which the server of "local" also serves other machines, with TLS',
    ] = ""
    place: Annotated[
        dict[str, str],
        PLACES,
        'where kinds or names run, such as { shell = "pool:default", "call:training:*" = "pool:gpu" }',
    ] = {}
    lease: Annotated[float, PAUSE, "seconds of silence after which a worker counts as lost"] = 30.0
    grace: Annotated[float, STOP, "seconds that a lost one has to come back, before its runs are lost"] = 30.0
    wait: Annotated[
        float,
        TIMEOUT,
        "seconds that a task waits for a worker that can perform it, before it fails: no_worker",
    ] = 600.0
    attempts: Annotated[
        int, LIMIT, "attempts of an idempotent task that may end with their worker; then it is lost"
    ] = 3


class WorkerSection(Struct, frozen=True):
    """This machine as a worker of another: `meantime worker`."""

    carrier: Annotated[
        str,
        OPTIONAL_TEXT,
        "the address of the carrier, with this worker's login; empty: that of the daemon here",
    ] = ""
    name: Annotated[str, OPTIONAL_TEXT, "its name; empty: that of the machine"] = ""
    owner_key: Annotated[str, OPTIONAL_TEXT, "the owner's public key, as `meantime workers` prints it"] = ""
    pool: Annotated[str, TEXT, "the pool whose work it takes"] = "default"
    slots: Annotated[int, whole(1, 10_000), "how much it runs at once"] = 32
    labels: Annotated[dict[str, str], LABELS, 'its labels, such as { gpu = "a100" }'] = {}
    tools: Annotated[list[str], TEXTS, "modules whose functions it performs"] = []
    shell: Annotated[bool, FLAG, "whether it performs commands"] = False
    drain: Annotated[float, STOP, "seconds that running work has to end after SIGTERM"] = 30.0


class Config(Struct, frozen=True):
    tools: Annotated[list[str], TEXTS, "modules whose @background functions can be started by name"] = []
    limits: LimitsSection = LimitsSection()
    agents: AgentsSection = AgentsSection()
    timeouts: TimeoutsSection = TimeoutsSection()
    inline: InlineSection = InlineSection()
    output: OutputSection = OutputSection()
    retention: RetentionSection = RetentionSection()
    ledger: LedgerSection = LedgerSection()
    runtime: RuntimeSection = RuntimeSection()
    wakes: WakesSection = WakesSection()
    notices: NoticesSection = NoticesSection()
    http: HttpSection = HttpSection()
    executors: ExecutorsSection = ExecutorsSection()
    engine: EngineSection = EngineSection()
    worker: WorkerSection = WorkerSection()
    mcp: McpSection = McpSection()
    plugins: PluginsSection = PluginsSection()


def settings_of(config: Config) -> Settings:
    """For Meantime.open."""
    limits, inline = config.limits, config.inline
    plain = InlineLimits(inline.max_bytes, inline.max_lines)
    return Settings(
        limits=Limits(
            per_thread=limits.per_thread,
            total=limits.total,
            per_kind={**limits.per_kind, "agent": config.agents.task_max_async},
            queued=limits.queued,
            on_limit=limits.on_limit,
            depth=limits.depth,
            reminders=limits.reminders,
            reminders_per_thread=limits.reminders_per_thread,
        ),
        default_timeout=config.timeouts.default,
        max_timeout=config.timeouts.maximum,
        inline=plain,
        inline_by_name={
            name: InlineLimits(own.get("max_bytes", plain.max_bytes), own.get("max_lines", plain.max_lines))
            for name, own in inline.by_name.items()
        },
        retention=Retention(**_fields(config.retention)),
        stop_grace=config.timeouts.stop_grace,
        stop_deadline=config.timeouts.stop_deadline,
        max_wait=config.timeouts.max_wait,
        executor_lease=config.executors.lease,
        executor_grace=config.executors.grace,
        worker_lease=config.engine.lease,
        worker_grace=config.engine.grace,
        worker_wait=config.engine.wait,
        worker_attempts=config.engine.attempts,
        place=config.engine.place,
        wakes=WakeBudget(**_fields(config.wakes)),
        notices=NoticeRate(**_fields(config.notices)),
        plugins=PluginDefaults(**_fields(config.plugins)),
        output_head=config.output.head,
        output_ring=config.output.ring,
        **_fields(config.runtime),
    )


def http_of(config: Config) -> HttpSettings:
    """For the HTTP server. Where it keeps its files is the caller's to add."""
    return replace(HttpSettings(**_fields(config.http)), hosts=tuple(config.http.hosts))


def _fields(section: Struct) -> dict[str, Any]:
    return {name: getattr(section, name) for name in section.__struct_fields__}
