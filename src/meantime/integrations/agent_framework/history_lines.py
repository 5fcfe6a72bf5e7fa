"""Messages of agent-framework as lines of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

import msgspec
from agent_framework import Content, Message

from meantime.kernel.lines import Kind, Line
from meantime.kernel.model import Json
from meantime.kernel.payloads import as_text, jsonable


def lines(messages: Iterable[Message]) -> Iterator[Line]:
    """A whole session."""
    tools: dict[str, str] = {}
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                tools[content.call_id or ""] = content.name or ""
            if content.type == "function_result":
                call = content.call_id or ""
                yield answered(tools.get(call, ""), call, content.result, failed=bool(content.exception))
        yield from spoken_lines(message)


def spoken_lines(message: Message) -> Iterator[Line]:
    """Words, thoughts and calls."""
    if message.role not in ("user", "assistant"):
        return
    for content in message.contents:
        if content.type == "text_reasoning" and content.text:
            yield Line(role="assistant", kind=Kind.THOUGHT, text=content.text)
    words = "".join(content.text or "" for content in message.contents if content.type == "text")
    if words:
        yield Line(role=message.role, text=words)
    for content in message.contents:
        if content.type == "function_call":
            yield called(content)


def called(content: Content) -> Line:
    call, tool = content.call_id or "", content.name or ""
    return Line(role="assistant", kind=Kind.CALL, tool=tool, call=call, arguments=arguments(content))


def answered(tool: str, call: str, result: object, *, failed: bool = False) -> Line:
    parts = cast("list[object]", result) if isinstance(result, list) else []
    texts = [part.text or "" for part in parts if isinstance(part, Content)]
    text = "\n".join(texts) if texts else as_text(jsonable(cast("object", result)).value)
    return Line(role="tool", kind=Kind.RESULT, tool=tool, call=call, text=text, failed=failed)


def arguments(content: Content) -> Json:
    """A model may write anything."""
    given = content.arguments
    if isinstance(given, str):
        try:
            return msgspec.json.decode(given)
        except msgspec.DecodeError:
            return given
    return jsonable(given).value
