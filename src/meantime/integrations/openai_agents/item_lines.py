"""Items of the OpenAI Agents SDK as lines of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec
from agents.items import TResponseInputItem

from meantime.kernel.lines import Kind, Line
from meantime.kernel.model import Json
from meantime.kernel.payloads import as_text, jsonable

from .session_items import spoken


def lines(items: Iterable[TResponseInputItem]) -> Iterator[Line]:
    """A whole session."""
    tools: dict[str, str] = {}
    for item in items:
        given = cast("Mapping[str, Any]", item)
        kind, call = given.get("type"), str(given.get("call_id") or "")
        if kind == "function_call":
            tools[call] = str(given.get("name") or "")
            yield called(tools[call], call, given.get("arguments"))
        elif kind == "function_call_output":
            yield answered(tools.get(call, ""), call, given.get("output"))
        elif given.get("role") in ("user", "assistant") and (text := spoken(item)):
            yield Line(role=str(given["role"]), text=text)


def called(tool: str, call: str, arguments: object) -> Line:
    return Line(role="assistant", kind=Kind.CALL, tool=tool, call=call, arguments=_decoded(arguments))


def answered(tool: str, call: str, output: object) -> Line:
    return Line(role="tool", kind=Kind.RESULT, tool=tool, call=call, text=as_text(jsonable(output).value))


def _decoded(arguments: object) -> Json:
    """A model may write anything."""
    if isinstance(arguments, str):
        try:
            return msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            return arguments
    return jsonable(arguments).value
