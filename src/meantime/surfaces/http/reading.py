"""What can be read of tasks, batches, threads and notices. A caller bound to a thread sees no other."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.errors import InvalidInput, NotFound, Refused, StillRunning, TaskEnded
from meantime.kernel.ids import ID, check_id
from meantime.kernel.model import Json
from meantime.kernel.tools import ToolInfo
from meantime.ports.store import Query

from . import answers, asking
from .endpoint import Table, person_only, thread_of
from .logs import history
from .parts import Parts
from .summary import wire_group
from .sweep import sweep
from .wire import wire_task
from .wire_notices import wire_batch, wire_notice, wire_thread

MOST = 1_000  # threads, or notices, in one answer
UNTOLD = "unread,leased,parked"


class Reading:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = parts.tasks

    def table(self) -> Table:
        return {
            "GET /v1/tasks": self.list,
            "GET /v1/tasks/{id}": self.detail,
            "GET /v1/tasks/{id}/logs": self.logs,
            "GET /v1/tasks/{id}/result": self.result,
            "GET /v1/tasks/{id}/runs": self.runs,
            "GET /v1/task-groups/{id}": self.group,
            "GET /v1/batches/{id}": self.batch,
            "GET /v1/threads": self.threads,
            "GET /v1/threads/{id}": self.thread,
            "GET /v1/notices": self.notices,
            "GET /v1/calls": self.calls,
            "GET /v1/servers/{name}/tools": self.tools,
        }

    async def list(self, request: Request) -> Response:
        query = asking.listing(request.query_params, thread_of(request))
        page = await self._tasks.page(query)
        return answers.json(
            {
                "tasks": [wire_task(task) for task in page.tasks],
                "total": page.total,
                "limit": query.limit,
                "offset": query.offset,
            }
        )

    async def detail(self, request: Request) -> Response:
        return answers.json(wire_task(await self._parts.task(request), whole=True))

    async def logs(self, request: Request) -> Response:
        return answers.json(await history(self._tasks, await self._parts.task(request), request.query_params))

    async def result(self, request: Request) -> Response:
        task = await self._parts.task(request)
        try:
            return answers.json({"result": await self._tasks.result(task.id, None)})
        except (StillRunning, TaskEnded) as problem:
            return answers.problem(problem, task=wire_task(task, whole=True))
        except OSError:
            raise Refused(
                "The file of this result is gone.", code="result_gone", hint="Its two ends are in the task."
            ) from None

    async def runs(self, request: Request) -> Response:
        task = await self._parts.task(request)
        runs = await self._tasks.runs_of(task.id, None)
        return answers.json({"runs": [wire_task(run, whole=True) for run in runs]})

    async def group(self, request: Request) -> Response:
        id = request.path_params["id"]
        query = Query(thread_of(request), batch=id, hidden=True)
        members = [task async for page in sweep(self._tasks, query) for task in page]
        if not members:
            raise NotFound(f"No task group {id[:128]!r}.", hint="List /v1/tasks to see each task's batchId.")
        numbers = wire_group(id, members, self._parts.clock.now())
        return answers.json({**numbers, "tasks": [wire_task(task) for task in members]})

    async def batch(self, request: Request) -> Response:
        id = request.path_params["id"]
        if not ID.match(id):
            raise NotFound(f"No batch {id[:128]!r}.", hint="List /v1/tasks to see each task's batchId.")
        return answers.json(wire_batch(await self._tasks.batch(id, thread_of(request))))

    async def threads(self, request: Request) -> Response:
        person_only(request)
        limit = asking.number(request.query_params, "limit", 200, least=1, most=MOST)
        return answers.json({"threads": [wire_thread(one) for one in await self._tasks.threads(limit)]})

    async def thread(self, request: Request) -> Response:
        """Every name is a thread: one that was never used has nothing."""
        id = asking.own_thread(request.path_params["id"], thread_of(request))
        found = wire_thread(await self._tasks.thread(id))
        return answers.json({**found, "reminder": await self._tasks.reminder(id)})

    async def notices(self, request: Request) -> Response:
        given = request.query_params
        thread = asking.scope(given, thread_of(request))
        limit = asking.number(given, "limit", MOST, least=1, most=MOST)
        states = [state for state in (given.get("state") or UNTOLD).split(",") if state]
        offset = asking.number(given, "offset", 0, least=0, most=1_000_000_000)
        thread = thread and check_id(thread, "thread")
        found = await self._tasks.notices(thread, states, limit=limit, offset=offset)
        total = await self._tasks.count_notices(thread, states)
        return answers.json({"notices": [wire_notice(notice) for notice in found], "total": total})

    async def calls(self, request: Request) -> Response:
        """What threads wait for inline now: no records yet."""
        thread = asking.scope(request.query_params, thread_of(request))
        return answers.json({"tasks": [wire_task(task) for task in await self._tasks.calls(thread)]})

    async def tools(self, request: Request) -> Response:
        """Of an MCP server; it is started, where it does not run."""
        name = request.path_params["name"]
        try:
            found = await self._tasks.tools(name)
        except InvalidInput as problem:
            if problem.code != "unknown_server":
                raise
            raise NotFound(f"There is no MCP server {name[:64]!r} here.", hint=problem.hint) from None
        return answers.json({"server": name, "tools": [_wire_tool(tool) for tool in found]})


def _wire_tool(tool: ToolInfo) -> dict[str, Json]:
    return {
        "name": tool.name,
        "tool": tool.full_name,  # what a start takes
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "asTask": tool.as_task,
    }
