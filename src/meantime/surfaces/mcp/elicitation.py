"""The question of a task of ours, as MCP asks it: an elicitation that the client shows to its person."""

from __future__ import annotations

from typing import Any, cast

from meantime.kernel.payloads import as_text, clean
from meantime.kernel.questions import Question, refusal

ANSWER = "answer"  # the one field of the form
DECLINED = "The person declined to answer."


def input_requests(question: Question) -> dict[str, Any]:
    message = clean(question.text)
    if question.arguments is not None:
        message = f"{message}\n{clean(as_text(question.arguments))[:2_000]}"
    params = {"mode": "form", "message": message, "requestedSchema": _form(question)}
    return {question.id: {"method": "elicitation/create", "params": params}}


def _form(question: Question) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if question.choices:
        offered = [{"const": one.id, "title": clean(one.label or one.id)} for one in question.choices]
        field = {**field, "oneOf": offered}
        if question.several:
            field = {"type": "array", "title": "Answers", "items": {"anyOf": offered}}
    return {"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]}


def answer_of(question: Question, response: Any) -> str | None:
    """In the words of `answer`; None where nothing was said that answers it."""
    said = cast("dict[str, Any]", response) if isinstance(response, dict) else {}
    if said.get("action") == "decline":
        return (refusal(question) or None) if question.choices else DECLINED
    content = said.get("content")
    if said.get("action") != "accept" or not isinstance(content, dict):
        return None
    answer = cast("dict[str, Any]", content).get(ANSWER)
    if isinstance(answer, list):
        return ",".join(str(one) for one in cast("list[Any]", answer))
    return answer if isinstance(answer, str) else None
