"""Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .words import Answer, Said, text_of


def heard(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = [Said(message["role"], text_of(message["content"])) for message in body["messages"]]
    return [tool["name"] for tool in body.get("tools") or []], said


def streamed(answer: Answer) -> Iterator[tuple[str, object]]:
    message = whole(answer)
    yield (
        "message_start",
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
    )
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces]
        else:
            call = answer.calls[index - bool(answer.pieces)]
            empty, deltas = {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": call.json}]
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield "message_stop", {"type": "message_stop"}


def whole(answer: Answer) -> dict[str, Any]:
    text = [{"type": "text", "text": answer.text}] if answer.pieces else []
    calls = [
        {"type": "tool_use", "id": f"toolu_{c.id}", "name": c.name, "input": c.arguments}
        for c in answer.calls
    ]
    return {
        "id": answer.id, "type": "message", "role": "assistant", "model": "scripted", "stop_sequence": None,
        "content": [*text, *calls], "stop_reason": "tool_use" if answer.calls else "end_turn",
        "usage": {"input_tokens": answer.input, "output_tokens": answer.output},
    }  # fmt: skip
