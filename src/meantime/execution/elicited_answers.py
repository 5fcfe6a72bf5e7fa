"""An elicitation of an MCP server as the question of a task, and a person's answer as the server wants it."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from meantime.kernel.payloads import clean
from meantime.kernel.questions import Question, Reply

ELICIT = "elicitation/create"
MOST_TEXT = 4_000  # characters
MOST_ID = 100  # and of the id of a question
_TRUE, _FALSE = ("true", "yes", "y", "1"), ("false", "no", "n", "0")


def elicitations(requests: object) -> dict[str, dict[str, Any]] | None:
    """The params of the elicitations among `inputRequests`, by name. None where one of them is not for a
    person."""
    named = cast("dict[str, Any]", requests) if isinstance(requests, dict) else {}
    found: dict[str, dict[str, Any]] = {}
    for name, request in named.items():
        if not isinstance(request, dict) or cast("dict[str, Any]", request).get("method") != ELICIT:
            return None
        params: Any = cast("dict[str, Any]", request).get("params")
        found[name] = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
    return found


def question_id(name: str) -> str:
    """The id of the question with this name in `inputRequests`: after a restart it is the same question."""
    return clean(name)[:MOST_ID]


def question_of(id: str, params: dict[str, Any]) -> Question:
    """A form with one field asks for its value; one with several, for a JSON object."""
    said = params.get("message")
    message = clean(said)[:MOST_TEXT] if isinstance(said, str) else "The server asks for input."
    fields = _fields(params)
    if len(fields) > 1:
        message = f"{message}\nAnswer with a JSON object that has: {', '.join(map(clean, fields))}."
    elif isinstance(params.get("url"), str):
        message = f"{message}\n{clean(params['url'])[:MOST_TEXT]}\nAnswer yes when that is done."
    return Question(id=id, text=message)


def result_of(params: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """An ElicitResult. An answer that is not what was asked for is handed on as it is: the server says so."""
    answer = str(reply).strip()
    if reply.by == "nobody" or reply.allows is False:
        return {"action": "decline"}
    fields = _fields(params)
    if not fields:
        return {"action": "decline"} if answer.lower() in _FALSE else {"action": "accept", "content": {}}
    try:
        whole = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        whole = None
    if isinstance(whole, dict):
        return {"action": "accept", "content": cast("dict[str, Any]", whole)}
    if len(fields) > 1:
        return {"action": "decline"}
    ((name, field),) = fields.items()
    return {"action": "accept", "content": {name: _converted(answer, field)}}


def _fields(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    schema = params.get("requestedSchema")
    found = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    if not isinstance(found, dict):
        return {}
    named = cast("dict[str, Any]", found)
    return {name: cast("dict[str, Any]", one) for name, one in named.items() if isinstance(one, dict)}


def _converted(answer: str, field: dict[str, Any]) -> Any:
    kind = field.get("type")
    if kind == "boolean" and answer.lower() in _TRUE + _FALSE:
        return answer.lower() in _TRUE
    try:
        if kind == "integer":
            return int(answer)
        if kind == "number":
            return float(answer)
    except ValueError:
        pass
    return answer
