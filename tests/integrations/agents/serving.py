"""How the scripted model is asked over HTTP, in four dialects, and how it fails when a step says so."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.waiting import pause

from .wires import anthropic, gemini, openai, responses
from .wires.words import answer_of

if TYPE_CHECKING:
    from .model import Model

AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: the connection is reset, not closed


def handler(model: Model) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def handle(self) -> None:
            with contextlib.suppress(ConnectionResetError):  # an agent was killed, or has ended
                super().handle()

        def do_HEAD(self) -> None:
            self._plain({})

        def do_GET(self) -> None:
            self._plain({"data": [], "models": []})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            wire = _wire(self.path.partition("?")[0])
            if wire is None:
                self._plain({"input_tokens": 1, "totalTokens": 1})
                return
            step = model.answer(*wire.heard(body))
            try:
                self._take_time(step)
                if "error" in step:
                    self._refuse(step)
                elif body.get("stream") or "stream" in self.path:
                    self._events(wire.streamed(answer_of(step)), step)
                else:
                    self._plain(wire.whole(answer_of(step)))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # whoever asked has gone

        def _take_time(self, step: dict[str, Any]) -> None:
            model.thinking += 1
            try:
                self._think(step)
            finally:
                model.thinking -= 1

        def _think(self, step: dict[str, Any]) -> None:
            pause(step.get("delay", 0), "the model thinks")
            if step.get("hang"):
                self._wait(lambda: False)
            if "wait_file" in step:
                self._wait(Path(step["wait_file"]).exists)

        def _wait(self, condition: Callable[[], bool]) -> None:
            """As long as the agent waits for its answer."""
            while not condition() and not self._gone():
                model.closed.wait(0.01)

        def _gone(self) -> bool:
            """Nobody waits for this answer any more."""
            if model.closed.is_set():
                raise BrokenPipeError
            self.connection.settimeout(0)
            try:
                return self.connection.recv(1, socket.MSG_PEEK) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
            finally:
                self.connection.settimeout(None)

        def _refuse(self, step: dict[str, Any]) -> None:
            error = {
                "message": step.get("message", f"scripted error {step['error']}"),
                "type": "scripted",
                "code": step["error"],
            }
            self._plain({"error": error}, step["error"], step.get("retry_after"))

        def _plain(self, answer: object, status: int = 200, retry_after: float | None = None) -> None:
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if retry_after is not None:
                self.send_header("Retry-After", str(retry_after))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else data)

        def _events(self, events: Iterator[tuple[str, object]], step: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            frames = [_frame(name, event) for name, event in events]
            for frame in frames[: len(frames) // 2] if step.get("reset") else frames:
                self.wfile.write(frame)
                pause(step.get("chunk_delay", 0), "the model is slow")
            if step.get("reset"):
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                self.connection.close()

    return Handler


def _wire(path: str) -> Any:
    if path.endswith("/messages"):
        return anthropic
    if path.endswith("/chat/completions"):
        return openai
    if path.endswith("/responses"):
        return responses
    return gemini if path.lower().endswith("generatecontent") else None


def _frame(name: str, event: object) -> bytes:
    head = f"event: {name}\n" if name else ""
    data = event if isinstance(event, str) else json.dumps(event)
    return f"{head}data: {data}\n\n".encode()
