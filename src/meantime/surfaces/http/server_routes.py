"""The table of routes about the server: events, numbers, tools, limits, and its description."""

from __future__ import annotations

from typing import Any

from .patch_stream import stream_events
from .routing import SERVER, Access, AnyRoute, Route
from .row_schemas import Completions, OverviewAnswer
from .search_completion import complete_search
from .server_info import get_health, get_info, get_openapi, get_stats, get_toolset, set_limits
from .server_schemas import Health, Info, ServerTools, Stats, WireLimits, WireToolset
from .task_reads import get_overview, list_tools
from .task_requests import LimitsBody, SearchText
from .thread_requests import EventFilter, ToolsetChoice

READS: tuple[AnyRoute, ...] = (
    Route(
        method="GET",
        path="/v1/events",
        operation="streamEvents",
        summary="Server-sent events: snapshot, deltas, heartbeat",
        note="`snapshot`; then `task.created`, `task.updated`, `task.completed`, `task.error` and "
        "`task.cancelled`, with a Task each; `heartbeat` after 30 s of silence; `resync`, followed by a "
        "snapshot, for a client that fell behind. With format=patches: `snapshot` of rows and the overview; "
        "then `patch` with the rows that changed, what is gone, and the overview if it changed; `heartbeat` "
        "after 10 s of silence.",
        gives="The stream.",
        handler=stream_events,
        seed=True,
        params=EventFilter,
        headers=("Last-Event-ID",),
        media=("text/event-stream",),
        errors=(404, 409),
    ),
    Route(
        method="GET",
        path="/v1/overview",
        operation="getOverview",
        summary="Everything in a few numbers, for a page",
        note="Counts by status, the last hour, slots, conversations and batches. It costs the same for any "
        "history. A thread's token sees its own numbers only.",
        gives="The numbers.",
        handler=get_overview,
        answer=OverviewAnswer,
    ),
    Route(
        method="GET",
        path="/v1/complete",
        operation="completeSearch",
        summary="Completions of the last word of a search",
        note="Qualifiers; statuses, kinds, agents, conversations and batches that there are.",
        gives="At most 20.",
        handler=complete_search,
        params=SearchText,
        answer=Completions,
    ),
    Route(
        method="GET",
        path="/v1/health",
        operation="getHealth",
        summary="Whether the server is alive; it needs no token",
        gives="It is alive.",
        handler=get_health,
        access=Access.OPEN,
        seed=True,
        answer=Health,
    ),
    Route(
        method="GET",
        path="/v1/stats",
        operation="getStats",
        summary="Everything in numbers, with what is not told yet",
        gives="The numbers.",
        handler=get_stats,
        seed=True,
        answer=Stats,
    ),
    Route(
        method="GET",
        path="/v1/info",
        operation="getInfo",
        summary="Version, ledger, limits, runners, tools and agents",
        gives="With the hosts, and the class of what each is promised; MCP clients are class C.",
        handler=get_info,
        answer=Info,
    ),
    Route(
        method="GET",
        path="/v1/toolset",
        operation="getToolset",
        summary="The tools that an agent is offered, as MCP's `tools/list` writes them",
        gives="With the guidance for its system prompt.",
        handler=get_toolset,
        params=ToolsetChoice,
        answer=WireToolset,
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/servers/{name}/tools",
        operation="listTools",
        summary="The tools of an MCP server, asked now",
        note="The server is started if it does not run: 404 if it is not configured, 409 if it cannot be "
        "started.",
        gives="Each with the `tool` that a start takes.",
        handler=list_tools,
        acts=True,
        subject=SERVER,
        answer=ServerTools,
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/openapi.json",
        operation="getOpenapi",
        summary="This description",
        gives="OpenAPI 3.1.",
        handler=get_openapi,
        answer=dict[str, Any],
    ),
)

WRITES: tuple[AnyRoute, ...] = (
    Route(
        method="POST",
        path="/v1/limits",
        operation="setLimits",
        summary="How much may run at once",
        gives="The limits in force now.",
        handler=set_limits,
        access=Access.WRITE_ALL,
        body=LimitsBody,
        answer=WireLimits,
    ),
)
