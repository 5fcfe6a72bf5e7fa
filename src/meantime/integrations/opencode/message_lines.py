"""A session's messages as lines of a conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from meantime.kernel.lines import Kind, Line

BEGUN = frozenset({"running", "completed", "error"})


def lines_of(role: str, part: dict[str, Any]) -> Iterator[Line]:
    """The text of a part, as far as it is complete. Later text has another id."""
    id, kind = part["id"], part["type"]
    if kind == "text":
        if part.get("text") and not part.get("ignored") and (role == "user" or _is_whole(part)):
            yield Line(role=role, text=part["text"], at=_time(part, "end"), id=id)
    elif kind == "reasoning":
        if part.get("text") and _is_whole(part):
            yield Line(role=role, kind=Kind.THOUGHT, text=part["text"], at=_time(part, "end"), id=id)
    elif kind == "tool":
        yield from _tool(role, part)


def _tool(role: str, part: dict[str, Any]) -> Iterator[Line]:
    state, tool, call = part["state"], part["tool"], part.get("callID", "")
    status = state["status"]
    if status in BEGUN:
        given = state.get("input")
        yield Line(
            role=role, kind=Kind.CALL, tool=tool, call=call, arguments=given, id=part["id"],
            at=_time(state, "start"),
        )  # fmt: skip
    if status in ("completed", "error"):
        failed = status == "error"
        text = str(state.get("error" if failed else "output") or "")
        yield Line(
            role="tool", kind=Kind.RESULT, tool=tool, call=call, text=text, failed=failed,
            id=f"{part['id']}.result", at=_time(state, "end"),
        )  # fmt: skip


def all_lines(messages: list[dict[str, Any]]) -> list[Line]:
    found = list[Line]()
    for message in messages:
        role = message["info"]["role"]
        lines = [line for part in message["parts"] for line in lines_of(role, part)]
        if message["info"].get("summary") and role == "assistant":
            text = "\n".join(line.text for line in lines if line.kind is Kind.TEXT)
            lines = [Line(role="assistant", kind=Kind.SUMMARY, text=text, id=message["info"]["id"])]
        found += lines
    return found


def text_of(message: dict[str, Any]) -> str:
    """The text of the agent in it."""
    texts = [part.get("text", "") for part in message["parts"] if part["type"] == "text"]
    return "\n\n".join(text for text in texts if text.strip())


def _is_whole(part: dict[str, Any]) -> bool:
    return bool(_time(part, "end"))


def _time(part: dict[str, Any], name: str) -> float:
    times: dict[str, Any] = part.get("time") or {}
    return (times.get(name) or 0) / 1000
