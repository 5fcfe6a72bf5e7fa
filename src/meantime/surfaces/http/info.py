"""About the door and what stands behind it: alive, in numbers, what it has, offers, and may run."""

from __future__ import annotations

import os
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.durations import iso
from meantime.kernel.limits import Limits
from meantime.ports.store import Query
from meantime.surfaces.mcp.owner_works import OwnWorks
from meantime.surfaces.mcp.tool_list import listed
from meantime.toolset.toolset import Toolset
from meantime.wording import OWN

from . import answers
from .asking import flag
from .body import Body
from .endpoint import Table, person_only, thread_of
from .parameters import document
from .parts import Parts
from .summary import wire_stats

DELIVERY = {
    "default": "exactly once for a host that looks for the notice's id in its transcript before it adds it",
    "A": "exactly once: the transcript is in our ledger, or keeps our cursor",
    "B": "exactly once: the host looks for the id before it adds it",
    "C": "at least once, with a stable id",
}


class LimitsBody(Body):
    per_thread: int | None = None
    total: int | None = None
    per_kind: dict[str, int] | None = None
    on_limit: str | None = None


class Info:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = parts.tasks
        self._began = parts.clock.monotonic()
        self._started_at = iso(parts.clock.now())

    def table(self) -> Table:
        return {
            "GET /v1/health": self.health,
            "GET /v1/stats": self.stats,
            "GET /v1/info": self.info,
            "GET /v1/toolset": self.toolset,
            "POST /v1/limits": self.limits,
            "GET /v1/openapi.json": self.openapi,
        }

    async def health(self, request: Request) -> Response:
        everything = await self._tasks.page(Query(hidden=True, limit=1))  # open to all, so it must be cheap
        return answers.json(
            {
                "status": "ok",
                "uptime": round(self._parts.clock.monotonic() - self._began, 3),
                "version": self._parts.settings.version,
                "taskCount": everything.total,
            }
        )

    async def stats(self, request: Request) -> Response:
        thread = thread_of(request)
        counts = await self._tasks.stats() if thread is None else {}
        return answers.json(wire_stats(await self._tasks.statistics(thread), counts))

    async def info(self, request: Request) -> Response:
        """The token of a thread sees its own host, and nobody else's process."""
        thread = thread_of(request)
        about, settings = self._parts.owner.about(), self._parts.settings
        everybody = (*about.hosts, *self._parts.beside.hosts())
        hosts = [host for host in everybody if thread in (None, host.thread)]
        return answers.json(
            {
                "name": "meantime",
                "version": settings.version,
                "pid": os.getpid(),
                "startedAt": self._started_at,
                "url": settings.url,
                "home": about.home,
                "ledger": about.ledger,
                "durability": about.durability,
                "limits": _wire(self._tasks.limits()),
                "degraded": bool((await self._tasks.stats()).get("degraded")),
                "runners": about.runners,
                "tools": self._parts.owner.tools(),
                "agents": about.agents,
                "delivery": DELIVERY,
                "hosts": [{"thread": host.thread, "class": host.grade, "kind": host.kind} for host in hosts],
                "executors": about.executors if thread is None else (),
                "clients": about.clients + self._parts.feed.clients,
            }
        )

    async def toolset(self, request: Request) -> Response:
        """What an agent is offered. `meantime mcp` gives this to its client before it has loaded anything
        that could make it."""
        given = request.query_params
        works = OwnWorks(self._tasks, self._parts.owner)
        toolset = Toolset(self._tasks, works, thread_of(request) or "anybody", given.get("dialect") or OWN)
        tools = await toolset.tools()
        return answers.json(
            {
                "version": self._parts.settings.version,
                "dialect": toolset.dialect.name,
                "guidance": toolset.dialect.guidance([tool.name for tool in tools]),
                "tools": [listed(tool, more=flag(given, "bySession")) for tool in tools],
            }
        )

    async def limits(self, request: Request) -> Response:
        """What is not named stays as it is."""
        person_only(request)
        body = await self._parts.body(request, LimitsBody)
        given = {name: getattr(body, name) for name in body.__struct_fields__}
        changes = {name: value for name, value in given.items() if value is not None}
        await self._tasks.set_limits(replace(self._tasks.limits(), **changes))
        return answers.json(_wire(self._tasks.limits()))

    async def openapi(self, request: Request) -> Response:
        return Response(document(), media_type="application/json")


def _wire(limits: Limits) -> dict[str, Any]:
    return {
        "perThread": limits.per_thread,
        "total": limits.total,
        "perKind": limits.per_kind,
        "onLimit": limits.on_limit,
    }
