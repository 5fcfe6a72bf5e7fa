"""A tool's answer, as the report of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from meantime.kernel.model import Failed, Json
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable

UNREACHED, STATUS = -32070, -32071  # our own codes, of errors that no server sent
INVALID_PARAMS = -32602
_CODES = {
    INVALID_PARAMS: "invalid_arguments",
    -32601: "not_supported",
    -32700: "bad_reply",
    UNREACHED: "server_unreachable",
    STATUS: "http_error",
}


def report_of(result: Mapping[str, Any]) -> Report:
    """The report of a CallToolResult: `isError` is a failure; structured content is the result where there is
    any.
    """
    content = result.get("content")
    items = cast("list[Any]", content) if isinstance(content, list) else []
    structured = result.get("structuredContent")
    value = structured if structured is not None else _plain(items)
    if result.get("isError"):
        return failed_tool(value)
    return Report(result=jsonable(value))


def failed_tool(value: Json) -> Report:
    text = value if isinstance(value, str) else ""
    message = text.strip() or "The tool says that it failed."
    whole = None if isinstance(value, str) else value
    return Report(error=Failed(message, "tool_error", partial=jsonable(whole).value))


def report_of_error(error: Any, tool: str) -> Report:
    """The report of a JSON-RPC error object: the server refused the call, or broke in it."""
    fields = cast("dict[str, Any]", error if isinstance(error, dict) else {})
    code, message = fields.get("code"), fields.get("message")
    text = message if isinstance(message, str) and message.strip() else "The server gave no reason."
    named = _CODES.get(code, "server_error") if isinstance(code, int) else "server_error"
    words = "does not take these arguments" if named == "invalid_arguments" else "was answered with an error"
    shown = f"{tool} {words}: {text}"
    return Report(
        error=Failed(shown, named, f"JSON-RPC error {code}", partial=jsonable(fields.get("data")).value)
    )


def _plain(items: list[Any]) -> Json:
    """Text alone is one text; with anything else in it, a list in which every item says what it is."""
    shown = [_item(item) for item in items]
    if all(isinstance(one, str) for one in shown):
        return "\n".join(shown)
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in shown]


def _item(item: Any) -> Json:
    if not isinstance(item, Mapping):
        return {"type": "unknown", "value": item}
    fields = dict(cast("Mapping[str, Any]", item))
    kind = fields.get("type")
    if kind == "text" and isinstance(fields.get("text"), str):
        return fields["text"]
    if kind in ("image", "audio"):
        return _placeholder(str(kind), fields.get("mimeType"), fields.get("data"))
    resource = fields.get("resource")
    if kind == "resource" and isinstance(resource, Mapping) and "blob" in resource:
        inner = cast("Mapping[str, Any]", resource)
        return {"uri": inner.get("uri"), **_placeholder("resource", inner.get("mimeType"), inner.get("blob"))}
    fields.pop("_meta", None)
    return fields


def _placeholder(kind: str, mime: Any, data: Any) -> dict[str, Json]:
    """Bytes have no place in a ledger that agents read: what they were, and how many, is kept."""
    size = len(data) * 3 // 4 - data[-2:].count("=") if isinstance(data, str) else 0
    return {"type": kind, "mimeType": mime if isinstance(mime, str) else "", "bytes": size, "omitted": True}
