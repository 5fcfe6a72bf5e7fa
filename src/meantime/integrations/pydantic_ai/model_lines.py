"""Model messages as lines of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_core import to_json

from meantime.kernel.lines import Kind, Line
from meantime.kernel.payloads import jsonable


def lines(messages: Iterable[ModelMessage]) -> Iterator[Line]:
    """A whole history."""
    for message in messages:
        at = message.timestamp.timestamp() if message.timestamp else 0.0
        if isinstance(message, ModelResponse):
            yield from of_response(message)
            for call in message.tool_calls:
                yield of_call(call)
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield Line(role="user", text=_text(part.content), at=at)
            elif isinstance(part, ToolReturnPart):
                yield of_result(part)


def of_response(response: ModelResponse) -> Iterator[Line]:
    """Thoughts and texts, and the calls of the provider's own tools. Calls of ours are apart."""
    for part in response.parts:
        if isinstance(part, ThinkingPart) and part.content:
            yield Line(role="assistant", kind=Kind.THOUGHT, text=part.content)
        elif isinstance(part, NativeToolCallPart):
            yield of_call(part)
        elif isinstance(part, NativeToolReturnPart):
            yield of_result(part)
    said = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    if said:
        yield Line(role="assistant", text=said)


def of_call(call: ToolCallPart | NativeToolCallPart) -> Line:
    try:
        arguments = jsonable(call.args_as_dict()).value
    except ValueError:  # a model may write anything
        arguments = jsonable(call.args).value
    return Line(
        role="assistant", kind=Kind.CALL, tool=call.tool_name, call=call.tool_call_id, arguments=arguments
    )


def of_result(part: Any) -> Line:
    """The line of anything that answers a call: a return, or a demand to try again."""
    if isinstance(part, ToolReturnPart | NativeToolReturnPart):
        text, failed = part.model_response_str(wrap_if_error=False), part.outcome != "success"
    else:
        text, failed = part.model_response(), True
    return Line(
        role="tool",
        kind=Kind.RESULT,
        tool=part.tool_name or "",
        call=part.tool_call_id,
        text=text,
        failed=failed,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(one if isinstance(one, str) else to_json(one, fallback=str).decode() for one in content)
