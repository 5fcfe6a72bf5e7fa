"""Tasks of MCP that a wrap offers for its server: by the extension (SEP-2663), where each request says that
its client takes them, and by 2025-11-25, where a client asks for one with its call."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from meantime.kernel.model import Task
from meantime.surfaces.mcp import mcp_tasks

from .raw_messages import NOTHING, encoded, parts, raw, text
from .tool_answers import name_of

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


class Introduction:
    """The answer of a server about itself in its handshake, or where it is discovered."""

    def __init__(self) -> None:
        self.name = ""
        self.server_has_tasks = False  # it makes tasks of calls itself
        self.offers_tasks = False  # we do so in its place, by 2025-11-25

    def shown(self, method: str, result: Raw, *, may_offer: bool) -> Raw:
        """The introduction for the host: with tasks, where the server has none and the protocol has."""
        whole = parts(result)
        found = parts(whole.get("capabilities", NOTHING))
        extensions = parts(found.get("extensions", NOTHING))
        self.name = self.name or name_of(result)
        self.server_has_tasks = "tasks" in found or mcp_tasks.EXTENSION in extensions
        has_version = method == DISCOVER or text(whole.get("protocolVersion")) == BY_2025
        if not may_offer or self.server_has_tasks or not found or not has_version:
            return result
        if method == DISCOVER:
            found["extensions"] = raw({**extensions, mcp_tasks.EXTENSION: {}})
        else:
            self.offers_tasks = True
            found["tasks"] = raw(OFFER)
        return encoded({**whole, "capabilities": encoded(found)})


def task_answer(task: Task, form: str) -> Raw:
    """The answer to a call that became this task."""
    if form == BY_EXTENSION:
        return raw({"resultType": "task", **mcp_tasks.state(task)})
    return raw({"task": mcp_tasks.state_2025(task)})
