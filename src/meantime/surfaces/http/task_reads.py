"""Reads of tasks, batches, threads and notices. A caller bound to a thread sees no other."""

from __future__ import annotations

from msgspec.structs import replace
from starlette.responses import Response

from meantime.kernel.errors import InvalidInput, NotFound, Refused, StillRunning, TaskEnded
from meantime.kernel.ids import ID, check_id
from meantime.kernel.work import ToolInfo
from meantime.ports.store import Query

from .dependencies import Dependencies
from .detail_encoding import wire_details, wire_inbox
from .detail_schemas import Inbox, WireTaskDetail
from .gate import CALLER
from .group_stats import wire_group
from .message_history import history
from .notice_encoding import wire_batch, wire_notice, wire_thread, wire_thread_detail
from .notice_schemas import NoticePage, ThreadDetail, ThreadPage
from .paging import pages
from .responses import error_response, json_response
from .routing import RequestContext
from .row_encoding import rows_of, wire_overview
from .row_schemas import OverviewAnswer, RowPage
from .server_schemas import ServerTools, WireTool
from .task_encoding import wire_task
from .task_lookup import find, listing, place_of, scope
from .task_requests import MOST_COUNTED, HistoryRange, TaskFilter, ThreadFilter
from .task_schemas import InlineCalls, LogMessage, Result, Runs, TaskGroup, TaskPage, WireBatch
from .thread_hosts import thread_hosts, wire_turn
from .thread_requests import InboxRange, NoticeFilter, ThreadRange
from .tokens import Caller

NOTHING = ""  # no thread is called so: the relatives of a task are not for a token of its question


async def list_tasks(deps: Dependencies, asked: RequestContext[TaskFilter, None]) -> TaskPage | Response:
    query = listing(asked.params, asked.thread, deps.clock.now())
    if asked.params.format == "rows":
        return json_response(await _row_page(deps, replace(query, before=place_of(asked.params.cursor))))
    page = await deps.tasks.page(query)
    found = [wire_task(task) for task in page.tasks]
    return TaskPage(tasks=found, total=page.total, limit=query.limit, offset=query.offset)


async def _row_page(deps: Dependencies, query: Query) -> RowPage:
    page = await deps.tasks.page(query, most=MOST_COUNTED)
    return RowPage(
        rows=await rows_of(deps.tasks, page.tasks),
        total=page.total,
        total_exact=page.exact,
        cursor=None if page.next is None else f"p{page.next}",
    )


async def get_overview(deps: Dependencies, asked: RequestContext[None, None]) -> OverviewAnswer:
    return wire_overview(await deps.tasks.overview(asked.thread))


async def get_task(deps: Dependencies, asked: RequestContext[None, None]) -> WireTaskDetail:
    task = await find(deps.tasks, asked.subject, asked.thread)
    found = await deps.tasks.details(task.id, None)
    (row,) = await rows_of(deps.tasks, [found.task])
    caller: Caller = asked.request.scope[CALLER]
    return wire_details(found, row, asked.thread if caller.question is None else NOTHING)


async def get_logs(deps: Dependencies, asked: RequestContext[HistoryRange, None]) -> list[LogMessage]:
    task = await find(deps.tasks, asked.subject, asked.thread)
    return await history(deps.tasks, task, asked.params)


async def get_result(deps: Dependencies, asked: RequestContext[None, None]) -> Result | Response:
    task = await find(deps.tasks, asked.subject, asked.thread)
    try:
        return Result(result=await deps.tasks.result(task.id, None))
    except (StillRunning, TaskEnded) as problem:
        return error_response(problem, task=wire_task(task, whole=True))
    except OSError:
        raise Refused(
            "The file of this result is gone.", code="result_gone", hint="Its two ends are in the task."
        ) from None


async def get_runs(deps: Dependencies, asked: RequestContext[None, None]) -> Runs:
    task = await find(deps.tasks, asked.subject, asked.thread)
    runs = await deps.tasks.runs_of(task.id, None)
    return Runs(runs=[wire_task(run, whole=True) for run in runs])


async def get_group(deps: Dependencies, asked: RequestContext[None, None]) -> TaskGroup:
    id = asked.subject
    query = Query(asked.thread, batch=id, hidden=True)
    members = [task async for page in pages(deps.tasks, query) for task in page]
    if not members:
        raise NotFound(f"No task group {id[:128]!r}.", hint="List /v1/tasks to see each task's batchId.")
    return wire_group(id, members, deps.clock.now())


async def get_batch(deps: Dependencies, asked: RequestContext[None, None]) -> WireBatch:
    id = asked.subject
    if not ID.match(id):
        raise NotFound(f"No batch {id[:128]!r}.", hint="List /v1/tasks to see each task's batchId.")
    return wire_batch(await deps.tasks.batch(id, asked.thread))


async def list_threads(deps: Dependencies, asked: RequestContext[ThreadRange, None]) -> ThreadPage:
    found = await deps.tasks.threads(asked.params.limit)
    return ThreadPage(threads=[wire_thread(one) for one in found])


async def get_thread(deps: Dependencies, asked: RequestContext[None, None]) -> ThreadDetail:
    """Every name is a thread: one that was never used has nothing."""
    id = asked.subject
    found, reminder = await deps.tasks.thread(id), await deps.tasks.reminder(id)
    attendance = await deps.tasks.attendance(id)
    hosts = thread_hosts(deps, id, attendance)
    return wire_thread_detail(found, reminder, hosts, wire_turn(attendance))


async def get_inbox(deps: Dependencies, asked: RequestContext[InboxRange, None]) -> Inbox:
    given = asked.params
    return wire_inbox(await deps.tasks.inbox(asked.subject, before=given.before, limit=given.limit))


async def list_notices(deps: Dependencies, asked: RequestContext[NoticeFilter, None]) -> NoticePage:
    given = asked.params
    thread = scope(given.thread, asked.thread)
    thread = thread and check_id(thread, "thread")
    found = await deps.tasks.notices(thread, given.state, limit=given.limit, offset=given.offset)
    total = await deps.tasks.count_notices(thread, given.state)
    return NoticePage(notices=[wire_notice(notice) for notice in found], total=total)


async def list_calls(deps: Dependencies, asked: RequestContext[ThreadFilter, None]) -> InlineCalls:
    """The calls that threads wait for inline now: not recorded yet."""
    found = await deps.tasks.calls(scope(asked.params.thread, asked.thread))
    return InlineCalls(tasks=[wire_task(task) for task in found])


async def list_tools(deps: Dependencies, asked: RequestContext[None, None]) -> ServerTools:
    """The tools of an MCP server; it is started, if it does not run."""
    name = asked.subject
    try:
        found = await deps.tasks.tools(name)
    except InvalidInput as problem:
        if problem.code != "unknown_server":
            raise
        raise NotFound(f"There is no MCP server {name[:64]!r} here.", hint=problem.hint) from None
    return ServerTools(server=name, tools=[_wire_tool(tool) for tool in found])


def _wire_tool(tool: ToolInfo) -> WireTool:
    return WireTool(
        name=tool.name,
        tool=tool.full_name,
        description=tool.description,
        input_schema=tool.input_schema,
        as_task=tool.as_task,
    )
