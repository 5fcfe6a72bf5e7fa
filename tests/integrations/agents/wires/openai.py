"""Chat completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .words import Answer, Said, text_of


def heard(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = [Said(message["role"], text_of(message.get("content"))) for message in body["messages"]]
    return [tool["function"]["name"] for tool in body.get("tools") or []], said


def streamed(answer: Answer) -> Iterator[tuple[str, object]]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        about = {"id": answer.id, "object": "chat.completion.chunk", "created": 0, "model": "m"}
        return {**about, "choices": [choice]}

    for piece in answer.pieces:
        yield "", chunk({"role": "assistant", "content": piece})
    for index, call in enumerate(_calls(answer)):
        yield "", chunk({"role": "assistant", "tool_calls": [{"index": index, **call}]})
    yield "", {**chunk({}, _reason(answer)), "usage": _usage(answer)}
    yield "", "[DONE]"


def whole(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    about = {"id": answer.id, "object": "chat.completion", "created": 0, "model": "m"}
    return {**about, "choices": [choice], "usage": _usage(answer)}


def _calls(answer: Answer) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
        for call in answer.calls
    ]


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, int]:
    total = answer.input + answer.output
    return {"prompt_tokens": answer.input, "completion_tokens": answer.output, "total_tokens": total}
