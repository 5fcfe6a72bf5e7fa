"""An Anthropic API on loopback that follows a script, for the Claude Code that the SDK brings along."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from tests.waiting import until

from meantime.testing.talk import ModelRequest, ToolCall

PREFIX = "mcp__meantime__"  # Claude Code's, for a tool of a server
NOTICE = re.compile(r"(?:^|hook additional context: )(?=<task-notification id=)", re.MULTILINE)
REMINDER = "<system-reminder>"
_ids = count(1)


class ScriptedAPI:
    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.requests: list[ModelRequest] = []
        self.models: list[str] = []
        self.closed = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.socket.settimeout(1.0)  # a client may be killed between its connect and our accept
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        serve = partial(self._server.serve_forever, poll_interval=0.01)  # so soon it can be closed
        threading.Thread(target=serve, daemon=True).start()

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def asked(self, body: dict[str, Any]) -> Any:
        self.requests.append(_read(body))
        self.models.append(body.get("model", ""))
        step = self.steps.pop(0) if self.steps else "the script has ended"
        while isinstance(step, asyncio.Event):
            until(partial(self._may_answer, step), "the model may answer")  # this thread has no event loop
            step = self.steps.pop(0)
        return step

    def _may_answer(self, gate: asyncio.Event) -> bool:
        return gate.is_set() or self.closed.is_set()


def _handler(api: ScriptedAPI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self._plain({})

        def do_GET(self) -> None:
            self._plain({"data": []})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            if not self.path.partition("?")[0].endswith("/messages"):
                self._plain({"input_tokens": 1})
                return
            step = api.asked(body)
            if step is None:  # never, or until Claude Code has gone
                api.closed.wait()
                return
            if isinstance(step, Exception):  # one that Claude Code does not retry
                error = {"type": "permission_error", "message": str(step)}
                self._plain({"type": "error", "error": error}, 403)
            else:
                self._stream(_events(step))

        def _plain(self, answer: object, status: int = 200) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else data)

        def _stream(self, events: Iterator[dict[str, Any]]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for event in events:
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    return Handler


def _events(step: str | ToolCall) -> Iterator[dict[str, Any]]:
    message = {
        "id": f"msg_{next(_ids)}", "type": "message", "role": "assistant", "model": "scripted",
        "content": [], "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 6, "output_tokens": 1},
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    if isinstance(step, ToolCall):
        written = step.arguments if isinstance(step.arguments, str) else json.dumps(step.arguments)
        name = step.tool if step.tool[0].isupper() or step.tool.startswith("mcp__") else PREFIX + step.tool
        block = {"type": "tool_use", "id": f"toolu_{next(_ids)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": written}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": step}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(step, ToolCall) else "end_turn"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 4}}
    yield {"type": "message_stop"}


def _read(body: dict[str, Any]) -> ModelRequest:
    """As the model reads it: notices among the prompts, whether they came as such or as a hook's context;
    what else hooks and Claude Code say, among the instructions."""
    prompts: list[str] = []
    results: list[str] = []
    instructions = [block["text"] for block in body.get("system") or ()]
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            if block["type"] == "tool_result":
                results.append(_text(block["content"]))
            elif (
                block["type"] == "text"
                and message["role"] == "user"
                and not block["text"].startswith(REMINDER)
            ):
                prompts.append(block["text"])
            elif block["type"] == "text" and message["role"] != "assistant":
                pieces = NOTICE.split(block["text"])
                prompts += [one for one in pieces if one.startswith("<task-notification id=")]
                instructions.append(block["text"])
    tools = [tool["name"].removeprefix(PREFIX) for tool in body.get("tools") or ()]
    return ModelRequest(prompts, results, tools, "\n".join(instructions))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)
