"""Answers about the server itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from meantime.kernel.model import Json

from .schemas import Answer, Count, Most, OnLimit, Time, described, one_of


class Health(Answer):
    status: Literal["ok"]
    uptime: Annotated[float, described("Seconds.", ge=0)]
    version: str
    task_count: Count


class StatusCounts(Answer):
    """How many tasks have each of seed 001's statuses."""

    running: Count
    resumed: Count
    completed: Count
    error: Count
    cancelled: Count


class DurationStats(Answer):
    """In milliseconds."""

    avg: Count
    max: Count
    min: Count


class Stats(Answer):
    total_tasks: Count
    active_tasks: Count
    by_status: StatusCounts
    by_agent: dict[str, Count]
    duration: DurationStats
    degraded: Annotated[bool, described("Beyond the seed: the disk is full, and new work is refused.")]
    resting_threads: Annotated[
        Count, described("Threads that kept waking themselves; they are woken less often for now.")
    ]
    notices: Annotated[
        dict[str, Count],
        described("Beyond the seed: how many notices are in each state; empty for a thread's token."),
    ]
    workers: Annotated[
        dict[str, Count],
        described("Beyond the seed: counters of work on other machines; empty without a carrier."),
    ]


class WireLimits(Answer):
    """-1 is no limit."""

    per_thread: Most
    total: Most
    per_kind: dict[str, Most]
    on_limit: OnLimit


class PushedHost(Struct, forbid_unknown_fields=True, rename={"grade": "class"}):
    thread: str
    grade: Annotated[str, one_of("A", "B", "C")]
    kind: str


class AgentName(Answer):
    name: str
    runner: str
    description: str


class WireWorker(Answer):
    name: str
    host: str
    pool: str
    slots: Count
    running: Count
    version: str
    silent: Annotated[float, described("Seconds since its last message.")]
    labels: dict[str, str]
    draining: bool
    skew: Annotated[float, described("Seconds that its clock is ahead of the owner's.")]


class Info(Answer):
    name: Literal["meantime"]
    version: str
    pid: Count
    started_at: Time
    url: Annotated[str, described("Empty if TCP is not served.")]
    home: str
    ledger: str
    durability: str
    limits: WireLimits
    degraded: bool
    runners: tuple[str, ...]
    tools: tuple[str, ...]
    agents: list[AgentName]
    delivery: dict[str, str]
    hosts: Annotated[list[PushedHost], described("A thread's token sees its own host only.")]
    executors: tuple[dict[str, Any], ...]
    workers: Annotated[list[WireWorker], described("Workers on other machines; empty for a thread's token.")]
    owner_key: Annotated[str, described("The public key that workers pin; empty without a carrier.")]
    clients: Count


class ToolAnnotations(Answer):
    read_only_hint: bool
    open_world_hint: bool


class ToolExecution(Answer):
    task_support: Literal["optional"]


class OfferedTool(Answer):
    """A tool as MCP's `tools/list` writes it."""

    name: str
    description: str
    input_schema: dict[str, Any]
    annotations: ToolAnnotations
    execution: ToolExecution | UnsetType = UNSET


class WireToolset(Answer):
    version: str
    dialect: str
    guidance: Annotated[str, described("For the system prompt of an agent that has these tools.")]
    tools: list[OfferedTool]


class WireTool(Answer):
    name: str
    tool: Annotated[str, described("The `tool` of a start: server/name.")]
    description: str
    input_schema: Annotated[Json, described("A JSON schema, as the server gives it.")]
    as_task: Annotated[bool, described("The tool may be asked to answer with a task of its own.")]


class ServerTools(Answer):
    server: str
    tools: list[WireTool]
