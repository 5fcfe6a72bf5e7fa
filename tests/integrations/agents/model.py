"""A model on loopback that says what the prompt tells it to say, for real agents.

The prompt carries the script: `@@[{"tool": "Bash", "arguments": {…}}, {"text": "done"}]@@`. The server keeps
no state: the step is the number of the model's own messages since the last script. After the last step
it echoes, so a message that somebody injected is seen in the answer. `asked` is what it was asked, in order.
A step {"status": 429, "after": 1} is a refusal, as long as `refusing`.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_ids = itertools.count(1)  # agents take messages with one id for one message
SCRIPT = re.compile(r"@@(\[.*?\])@@", re.DOTALL)


class Said(NamedTuple):
    role: str
    text: str


class Asked(NamedTuple):
    """One question to the model."""

    tools: tuple[str, ...]
    said: tuple[Said, ...]
    answer: dict[str, Any]

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.said)


class Model:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.refusing = True
        self.before_answer: Callable[[Asked], None] = lambda asked: None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def turns(self) -> list[Asked]:
        """What the agent itself asked: titles and the like are asked without tools."""
        return [asked for asked in self.asked if asked.tools]

    def answer(self, tools: list[str], said: list[Said]) -> dict[str, Any]:
        step = _step(said) if tools else {"text": "A title"}
        if "status" in step and not self.refusing:
            step = {"text": "At last."}
        self.asked.append(Asked(tuple(tools), tuple(said), step))
        self.before_answer(self.asked[-1])
        return step


def _step(said: list[Said]) -> dict[str, Any]:
    """A script that the model itself repeats, or a tool, is none."""
    for place in range(len(said) - 1, -1, -1):
        found = SCRIPT.search(said[place].text) if said[place].role == "user" else None
        if found:
            steps = json.loads(found[1])
            done = sum(part.role == "assistant" for part in said[place:])
            if done < len(steps):
                return steps[done]
            break
    return {"text": f"ECHO {said[-1].text[-300:]}" if said else "ECHO"}


def _handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._plain({})

        def do_GET(self) -> None:
            self._plain({"data": [], "models": []})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            path = self.path.partition("?")[0]
            if path.endswith("/messages"):
                self._step(model.answer(*_of_anthropic(body)), _anthropic)
            elif path.endswith("/chat/completions"):
                self._step(model.answer(*_of_openai(body)), _openai)
            elif path.endswith("/responses"):
                self._step(model.answer(*_of_responses(body)), _responses)
            elif "GenerateContent" in path:
                self._step(model.answer(*_of_gemini(body)), _gemini)
            else:
                self._plain({"input_tokens": 1, "totalTokens": 1})

        def _step(self, step: dict[str, Any], speak: Callable[[Any], Iterator[tuple[str, object]]]) -> None:
            if "status" not in step:
                self._events(speak(step))
                return
            error = {"type": "refused", "message": step.get("message", "The model said no.")}
            self._plain({"type": "error", "error": error}, step["status"], step.get("after"))

        def _plain(self, answer: object, status: int = 200, after: float | None = None) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            if after is not None:
                self.send_header("Retry-After", str(after))
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else data)

        def _events(self, events: Iterator[tuple[str, object]]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for name, event in events:
                head = f"event: {name}\n" if name else ""
                data = event if isinstance(event, str) else json.dumps(event)
                self.wfile.write(f"{head}data: {data}\n\n".encode())
            self.close_connection = True

    return Handler


# -- what is asked, in each dialect: the names of the tools, and who said what


def _of_anthropic(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = [Said(message["role"], _text(message["content"])) for message in body["messages"]]
    return [tool["name"] for tool in body.get("tools") or []], said


def _of_openai(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = [Said(message["role"], _text(message.get("content"))) for message in body["messages"]]
    return [tool["function"]["name"] for tool in body.get("tools") or []], said


def _of_responses(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = list[Said]()
    for item in body["input"]:
        if item.get("type") == "function_call":
            said.append(Said("assistant", item.get("arguments") or ""))
        elif item.get("type", "message") == "message":
            said.append(Said(item["role"], _text(item["content"])))
        else:
            said.append(Said("tool", _text(item.get("output"))))
    return [tool.get("name") or tool["type"] for tool in body.get("tools") or []], said


def _of_gemini(body: dict[str, Any]) -> tuple[list[str], list[Said]]:
    said = list[Said]()
    for content in body.get("contents") or []:
        role = "assistant" if content.get("role") == "model" else "user"
        said.append(Said(role, "\n".join(_text(part) for part in content.get("parts") or [])))
    named = [
        each["name"] for tool in body.get("tools") or [] for each in tool.get("functionDeclarations") or []
    ]
    return named, said


def _text(content: Any) -> str:
    """All the text in it, wherever it is nested."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        if isinstance(content.get("functionResponse"), dict):
            return json.dumps(content["functionResponse"].get("response"), ensure_ascii=False)
        return _text(content.get("text") or content.get("content"))
    return ""


# -- what it answers, in each dialect


def _anthropic(step: dict[str, Any]) -> Iterator[tuple[str, object]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {
        "id": f"msg_{next(_ids)}", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield "message_start", {"type": "message_start", "message": message}
    if "tool" in step:
        id = f"toolu_{abs(hash(json.dumps(step))):x}"
        block = {"type": "tool_use", "id": id, "name": step["tool"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["arguments"])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step["text"]}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": "tool_use" if "tool" in step else "end_turn", "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ended, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _openai(step: dict[str, Any]) -> Iterator[tuple[str, object]]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [choice],
        }

    if "tool" in step:
        function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
        call = {"index": 0, "id": f"call_{abs(hash(json.dumps(step))):x}", "type": "function"}
        yield "", chunk({"role": "assistant", "tool_calls": [{**call, "function": function}]})
    else:
        yield "", chunk({"role": "assistant", "content": step["text"]})
    yield "", chunk({}, "tool_calls" if "tool" in step else "stop")
    yield "", "[DONE]"


def _responses(step: dict[str, Any]) -> Iterator[tuple[str, object]]:
    if "tool" in step:
        id = f"call_{abs(hash(json.dumps(step))):x}"
        given = json.dumps(step["arguments"])
        item = {"type": "function_call", "id": "f1", "call_id": id, "name": step["tool"], "arguments": given}
    else:
        content = [{"type": "output_text", "text": step["text"], "annotations": []}]
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    answer = {"id": "r1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield "response.created", {"type": "response.created", "response": {**answer, "output": []}}
    yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield "response.completed", {"type": "response.completed", "response": answer}


def _gemini(step: dict[str, Any]) -> Iterator[tuple[str, object]]:
    if "tool" in step:
        part = {"functionCall": {"name": step["tool"], "args": step["arguments"]}}
    else:
        part = {"text": step["text"]}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield "", {"candidates": [candidate], "usageMetadata": usage}
