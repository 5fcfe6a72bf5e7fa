"""The tools of a dialect as `tools/list` writes them. The SDK's server and the daemon's /v1/toolset both
take them from here, so a client gets the same list whichever of them answers. Without the SDK."""

from __future__ import annotations

from typing import Any

from meantime.ports.dialect import Tool
from meantime.toolset import exports


def listed(tool: Tool, *, more: bool = False) -> dict[str, Any]:
    """`more`: a call may have arguments that the schema does not name (see `Door`)."""
    found = exports.mcp(tool)
    if more:
        schema = found["inputSchema"]
        found["inputSchema"] = {name: part for name, part in schema.items() if name != "additionalProperties"}
    if tool.starts:
        found["execution"] = {"taskSupport": "optional"}
    return found
