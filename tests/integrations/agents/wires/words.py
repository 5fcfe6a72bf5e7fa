"""What all dialects have in common: who said what, and what is answered."""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple

_ids = itertools.count(1)  # agents take messages with one id for one message


class Said(NamedTuple):
    role: str
    text: str


class Call(NamedTuple):
    id: str
    name: str
    arguments: dict[str, Any]
    namespace: str | None = None

    @property
    def json(self) -> str:
        return json.dumps(self.arguments)


class Answer(NamedTuple):
    id: str
    pieces: list[str]  # of the text
    calls: list[Call]
    input: int
    output: int

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def answer_of(step: dict[str, Any]) -> Answer:
    tools = step.get("tools") or ([step] if "tool" in step else [])
    calls = [
        Call(f"call_{next(_ids)}", one["tool"], one.get("arguments") or {}, one.get("namespace"))
        for one in tools
    ]
    text, usage = step.get("text", ""), step.get("usage") or {}
    size = -(-len(text) // step.get("chunks", 1)) or 1
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    if not pieces and not calls:
        pieces = [""]
    return Answer(f"msg_{next(_ids)}", pieces, calls, usage.get("input", 1), usage.get("output", 1))


def text_of(content: Any) -> str:
    """All the text in it, wherever it is nested."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict):
        if isinstance(content.get("functionResponse"), dict):
            return json.dumps(content["functionResponse"].get("response"), ensure_ascii=False)
        return text_of(content.get("text") or content.get("content"))
    return ""
