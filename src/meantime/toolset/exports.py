"""Tools as other systems write them down. The name that a model calls is the same in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from meantime.kernel.constraints import check_choice
from meantime.ports.dialect import Tool

Form: TypeAlias = Literal["openai", "anthropic", "mcp", "gemini"]


def exported(tools: Sequence[Tool], form: Form) -> list[dict[str, Any]]:
    known = check_choice(form, "form", tuple(FORMS))
    return [FORMS[known](tool) for tool in tools]


def openai(tool: Tool) -> dict[str, Any]:
    """A function of chat completions."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def anthropic(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def mcp(tool: Tool) -> dict[str, Any]:
    hints = {"readOnlyHint": tool.reads, "openWorldHint": tool.starts}
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": hints,
    }


def listed(tool: Tool, *, more: bool = False) -> dict[str, Any]:
    """A tool as `tools/list` of MCP writes it. The SDK's server and the daemon's /v1/toolset both take it
    from here, so a client gets the same list whichever of them answers. `more`: a call may have arguments
    that the schema does not name."""
    found = mcp(tool)
    if more:
        schema = found["inputSchema"]
        found["inputSchema"] = {name: part for name, part in schema.items() if name != "additionalProperties"}
    if tool.starts:
        found["execution"] = {"taskSupport": "optional"}
    return found


def gemini(tool: Tool) -> dict[str, Any]:
    """A function declaration, as seed 003 writes them: types in upper case."""
    return {"name": tool.name, "description": tool.description, "parameters": _declared(tool.schema)}


# What a Schema of Gemini has; the rest of JSON schema it refuses.
_LIMITS = ("minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength")
_KEPT = ("description", "enum", "required", *_LIMITS)


def _declared(schema: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "type" in schema:
        found["type"] = str(schema["type"]).upper()
    elif "enum" in schema:
        found["type"] = "STRING"
    found |= {key: schema[key] for key in _KEPT if key in schema}
    if "properties" in schema:
        properties = cast("dict[str, dict[str, Any]]", schema["properties"])
        found["properties"] = {name: _declared(one) for name, one in properties.items()}
    if isinstance(schema.get("items"), dict):
        found["items"] = _declared(schema["items"])
    if "anyOf" in schema:
        found["anyOf"] = [_declared(one) for one in schema["anyOf"]]
    return found


FORMS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "openai": openai,
    "anthropic": anthropic,
    "mcp": mcp,
    "gemini": gemini,
}
