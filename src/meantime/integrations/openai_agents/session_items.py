"""Items of an OpenAI session: what was said in them, and whether an answer is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agents.items import TResponseInputItem


def user(text: str) -> TResponseInputItem:
    return {"role": "user", "content": text}


def spoken(item: TResponseInputItem) -> str:
    """The text of a message; empty for everything else."""
    given = cast("Mapping[str, Any]", item)
    content = given.get("content")
    if isinstance(content, str):
        return content
    parts = cast("Iterable[Mapping[str, Any]]", content) if isinstance(content, list) else ()
    return "".join(str(part.get("text") or "") for part in parts)


def ends_open(items: Sequence[TResponseInputItem]) -> bool:
    """Something was said to the agent, or a tool has answered, and the agent has not said anything since."""
    if not items:
        return False
    last = cast("Mapping[str, Any]", items[-1])
    return last.get("role") == "user" or last.get("type") == "function_call_output"
