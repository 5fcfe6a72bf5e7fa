"""Which tools a server has."""

from __future__ import annotations

import asyncio

import mcp_types as types
from mcp.client import ClientSession
from mcp.shared.exceptions import MCPError

from meantime.kernel.work import ToolInfo

PAGES = 100  # of a list; a server that never ends it is not heard further
REQUEST_TIMEOUT = 60.0  # seconds for what is no call of a tool


async def list_tools(session: ClientSession, server: str) -> dict[str, ToolInfo]:
    """By name. Raises MCPError, even if it takes too long."""
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT):
            return await _all(session, server)
    except TimeoutError:
        raise MCPError(types.REQUEST_TIMEOUT, "The server did not list its tools in time.") from None


async def _all(session: ClientSession, server: str) -> dict[str, ToolInfo]:
    found: dict[str, ToolInfo] = {}
    cursor: str | None = None
    may = _has_tasks(session.server_capabilities)
    for _ in range(PAGES):
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            support = tool.execution.task_support if tool.execution is not None else None
            as_task = may and support in ("optional", "required")
            schema = tool.input_schema
            found[tool.name] = ToolInfo(server, tool.name, tool.description or "", schema, as_task)
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _has_tasks(capabilities: types.ServerCapabilities | None) -> bool:
    """By the protocol of 2025-11-25, where the client asks for a task."""
    tasks = capabilities.tasks if capabilities is not None else None
    requests = tasks.requests if tasks is not None else None
    return requests is not None and requests.tools is not None and requests.tools.call is not None
