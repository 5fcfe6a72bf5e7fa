"""The scripted model, for clients that do not stream."""

from __future__ import annotations

import itertools
import json
from http.server import BaseHTTPRequestHandler
from typing import Any

from integrations.agents import model as scripted

_ids = itertools.count(1)


class PlainModel(scripted.Model):
    """Answers `/chat/completions` with one object, where the question does not ask for a stream."""

    def __init__(self) -> None:
        super().__init__()
        self._server.RequestHandlerClass = _plain(self, self._server.RequestHandlerClass)


def _plain(model: scripted.Model, handler: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(handler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size))
            said = [
                scripted.Said(message["role"], scripted._text(message.get("content")))
                for message in body["messages"]
            ]
            tools = [tool["function"]["name"] for tool in body.get("tools") or []]
            self._plain(_completion(model.answer(tools, said)))

    return Handler


def _completion(step: dict[str, Any]) -> dict[str, Any]:
    if "tool" in step:
        function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
        calls = [{"id": f"call_{next(_ids)}", "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    else:
        message = {"role": "assistant", "content": step["text"]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool" in step else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "c1", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [choice], "usage": usage,
    }  # fmt: skip
