"""About the server and its owner: alive, in numbers, what it has, offers, and may run."""

from __future__ import annotations

import asyncio
import os

import msgspec
from msgspec.structs import asdict, replace
from starlette.responses import Response

from meantime.kernel.durations import iso
from meantime.kernel.limits import Limits
from meantime.ports.store import Query
from meantime.toolset.exports import listed
from meantime.toolset.owner_catalog import OwnerCatalog
from meantime.toolset.toolset import Toolset

from .dependencies import Dependencies
from .group_stats import wire_stats
from .routing import RequestContext
from .server_schemas import (
    AgentName,
    Health,
    Info,
    OfferedTool,
    PushedHost,
    Stats,
    WireLimits,
    WireToolset,
    WireUnmetNeed,
    WireWorker,
)
from .task_requests import LimitsBody
from .thread_requests import ToolsetChoice

DELIVERY = {
    "default": "exactly once for a host that looks for the notice's id in its transcript before it adds it",
    "A": "exactly once: the transcript is in our ledger, or keeps our cursor",
    "B": "exactly once: the host looks for the id before it adds it",
    "C": "at least once, with a stable id",
}


async def get_health(deps: Dependencies, asked: RequestContext[None, None]) -> Health:
    everything = await deps.tasks.page(Query(hidden=True, limit=1))  # open to all, so it must be cheap
    return Health(
        status="ok",
        uptime=round(deps.clock.monotonic() - deps.began, 3),
        version=deps.settings.version,
        task_count=everything.total,
    )


async def get_stats(deps: Dependencies, asked: RequestContext[None, None]) -> Stats:
    counts = await deps.tasks.stats() if asked.thread is None else {}
    return wire_stats(await deps.tasks.statistics(asked.thread), counts)


async def get_info(deps: Dependencies, asked: RequestContext[None, None]) -> Info:
    """The token of a thread sees its own host, and nobody else's process."""
    about, settings = deps.owner.about(), deps.settings
    hosts = [host for host in (*about.hosts, *deps.mcp_hosts()) if asked.thread in (None, host.thread)]
    return Info(
        name="meantime",
        version=settings.version,
        pid=os.getpid(),
        started_at=iso(deps.started_at),
        url=settings.url,
        home=about.home,
        ledger=about.ledger,
        durability=about.durability,
        limits=wire_limits(deps.tasks.limits()),
        degraded=bool((await deps.tasks.stats()).get("degraded")),
        runners=about.runners,
        tools=tuple(deps.owner.tools()),
        agents=[
            AgentName(name=one.name, runner=one.runner, description=one.description) for one in about.agents
        ],
        delivery=DELIVERY,
        hosts=[PushedHost(thread=host.thread, grade=host.grade, kind=host.kind) for host in hosts],
        executors=about.executors if asked.thread is None else (),
        workers=[WireWorker(**asdict(one)) for one in about.workers] if asked.thread is None else [],
        unmet=[WireUnmetNeed(**asdict(one)) for one in about.unmet] if asked.thread is None else [],
        owner_key=about.owner_key,
        clients=about.clients + deps.feed.clients,
    )


async def get_toolset(deps: Dependencies, asked: RequestContext[ToolsetChoice, None]) -> WireToolset:
    """The tools that an agent is offered. `meantime mcp` gives this to its client before it has loaded
    anything that could make it."""
    works = OwnerCatalog(deps.tasks, deps.owner)
    toolset = Toolset(deps.tasks, works, asked.thread or "anybody", asked.params.dialect)
    tools = await toolset.tools()
    offered = [listed(tool, more=asked.params.by_session) for tool in tools]
    return WireToolset(
        version=deps.settings.version,
        dialect=toolset.dialect.name,
        guidance=toolset.dialect.guidance([tool.name for tool in tools]),
        tools=msgspec.convert(offered, list[OfferedTool]),
    )


async def set_limits(deps: Dependencies, asked: RequestContext[None, LimitsBody]) -> WireLimits:
    given = {name: getattr(asked.body, name) for name in asked.body.__struct_fields__}
    changes = {name: value for name, value in given.items() if value is not None}
    await deps.tasks.set_limits(replace(deps.tasks.limits(), **changes))
    return wire_limits(deps.tasks.limits())


async def get_openapi(deps: Dependencies, asked: RequestContext[None, None]) -> Response:
    """Made with the first request for it, beside the event loop: that takes a tenth of a second."""
    from .openapi import document

    return Response(await asyncio.to_thread(document), media_type="application/json")


def wire_limits(limits: Limits) -> WireLimits:
    return WireLimits(
        per_thread=limits.per_thread,
        total=limits.total,
        per_kind=limits.per_kind,
        on_limit=limits.on_limit,
    )
