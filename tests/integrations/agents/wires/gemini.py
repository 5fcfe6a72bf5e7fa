"""Gemini."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .words import Answer, Said, text_of


def heard(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = list[Said]()
    for content in body.get("contents") or []:
        role = "assistant" if content.get("role") == "model" else "user"
        said.append(Said(role, "\n".join(text_of(part) for part in content.get("parts") or [])))
    named = [
        each["name"] for tool in body.get("tools") or [] for each in tool.get("functionDeclarations") or []
    ]
    return named, said


def streamed(answer: Answer) -> Iterator[tuple[str, object]]:
    for piece in answer.pieces[:-1]:
        yield "", _chunk([{"text": piece}], None, answer)
    yield "", _chunk([*_last(answer.pieces[-1:]), *_calls(answer)], "STOP", answer)


def whole(answer: Answer) -> dict[str, Any]:
    return _chunk([*_last(answer.pieces and [answer.text]), *_calls(answer)], "STOP", answer)


def _last(pieces: list[str]) -> list[dict[str, Any]]:
    return [{"text": piece} for piece in pieces]


def _calls(answer: Answer) -> list[dict[str, Any]]:
    return [{"functionCall": {"name": call.name, "args": call.arguments}} for call in answer.calls]


def _chunk(parts: list[dict[str, Any]], reason: str | None, answer: Answer) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    counted = {"promptTokenCount": answer.input, "candidatesTokenCount": answer.output}
    usage = {**counted, "totalTokenCount": answer.input + answer.output}
    return {"candidates": [candidate], "usageMetadata": usage}
