"""Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .words import Answer, Said, text_of


def heard(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said, before = list[Said](), ""
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind == "function_call":
            if before != "function_call":  # several calls are one message of the model
                said.append(Said("assistant", item.get("arguments") or ""))
        elif kind == "message":
            said.append(Said(item["role"], text_of(item["content"])))
        else:
            said.append(Said("tool", text_of(item.get("output"))))
        before = kind
    return [tool.get("name") or tool["type"] for tool in body.get("tools") or []], said


def streamed(answer: Answer) -> Iterator[tuple[str, object]]:
    done = whole(answer)
    yield "response.created", {"type": "response.created", "response": {**done, "output": []}}
    for index, item in enumerate(done["output"]):
        if item["type"] == "message":
            yield from _text(answer, item, index)
        ended = "response.output_item.done"
        yield ended, {"type": ended, "output_index": index, "item": item}
    yield "response.completed", {"type": "response.completed", "response": done}


def _text(answer: Answer, item: dict[str, Any], index: int) -> Iterator[tuple[str, object]]:
    added, said = "response.output_item.added", "response.output_text.delta"
    yield added, {"type": added, "output_index": index, "item": {**item, "content": []}}
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    for piece in answer.pieces:
        yield said, {"type": said, **place, "delta": piece}


def whole(answer: Answer) -> dict[str, Any]:
    output = list[dict[str, Any]]()
    if answer.pieces:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        about = {"type": "message", "id": answer.id, "role": "assistant", "status": "completed"}
        output.append({**about, "content": content})
    for call in answer.calls:
        item = {"type": "function_call", "id": f"f_{call.id}", "call_id": call.id, "name": call.name}
        namespace = {"namespace": call.namespace} if call.namespace else {}
        output.append({**item, **namespace, "arguments": call.json})
    counted = {"input_tokens": answer.input, "output_tokens": answer.output}
    usage = {**counted, "total_tokens": answer.input + answer.output}
    about = {"id": f"resp_{answer.id}", "object": "response", "status": "completed"}
    return {**about, "output": output, "usage": usage}
