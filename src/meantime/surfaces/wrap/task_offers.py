"""Tasks of MCP that a wrap offers for its server: by the extension (SEP-2663), where each request says that
its client takes them, and by 2025-11-25, where a client asks for one with its call."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from meantime.kernel.model import Task
from meantime.surfaces.mcp import mcp_tasks

from .raw_messages import NOTHING, encoded, parts, raw, text

BY_EXTENSION, BY_2025 = "extension", "2025-11-25"  # the form of a task
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"  # of a request without a handshake, in its _meta
INITIALIZE, DISCOVER = "initialize", "server/discover"
OFFER: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


def declares_tasks(meta: dict[str, Raw]) -> bool:
    """Whether the client of a request with this _meta takes tasks instead of results."""
    found = parts(meta.get(CAPABILITIES, NOTHING))
    return mcp_tasks.EXTENSION in parts(found.get("extensions", NOTHING))


def declared_by(params: Raw) -> bool:
    return declares_tasks(parts(parts(params).get("_meta", NOTHING)))


def has_own_tasks(result: Raw) -> bool:
    """Whether a server that introduces itself so makes tasks of calls."""
    found = parts(parts(result).get("capabilities", NOTHING))
    return "tasks" in found or mcp_tasks.EXTENSION in parts(found.get("extensions", NOTHING))


def can_offer(result: Raw, method: str) -> bool:
    """Where a server has no tasks, and the protocol has."""
    if has_own_tasks(result) or not parts(result).get("capabilities"):
        return False
    return method == DISCOVER or text(parts(result).get("protocolVersion")) == BY_2025


def with_offer(result: Raw, method: str) -> Raw:
    """The server's introduction of itself, with tasks."""
    whole = parts(result)
    found = parts(whole["capabilities"])
    if method == DISCOVER:
        extensions = parts(found.get("extensions", NOTHING))
        found["extensions"] = raw({**extensions, mcp_tasks.EXTENSION: {}})
    else:
        found["tasks"] = raw(OFFER)
    return encoded({**whole, "capabilities": encoded(found)})


def task_answer(task: Task, form: str) -> Raw:
    """The answer to a call that became this task."""
    if form == BY_EXTENSION:
        return raw({"resultType": "task", **mcp_tasks.state(task)})
    return raw({"task": mcp_tasks.state_2025(task)})
