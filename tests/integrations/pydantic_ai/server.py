"""A tiny OpenAI-compatible model on loopback that is in trouble when the script says so."""

from __future__ import annotations

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.waiting import LIMIT


class Server:
    """Each step is a text to answer, or "429", "500", "reset", "cut" (in the middle of an answer) or "hang";
    after the last one it echoes. `most` is how many requests it takes at once: more are refused, and it
    answers none before it has refused one."""

    def __init__(self, steps: list[str], most: int | None = None) -> None:
        self.steps = list(steps)
        self.most = most
        self.full = threading.Event()
        self.asked = self.refused = self.inside = 0
        self.lock = threading.Lock()
        self.over = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.socket.settimeout(1.0)  # a client may be killed between its connect and our accept
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Server:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def enter(self) -> bool:
        with self.lock:
            self.asked += 1
            has_room = self.most is None or self.inside < self.most
            self.inside += has_room
            self.refused += not has_room
        if not has_room:
            self.full.set()
        return has_room

    def step(self, body: dict[str, Any]) -> str:
        with self.lock:
            if self.steps:
                return self.steps.pop(0)
        if self.most is not None:
            self.full.wait(LIMIT)
        return f"ECHO {body['messages'][-1]['content']}"

    def left(self) -> None:
        with self.lock:
            self.inside -= 1


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not server.enter():
                self.answer("429")
                return
            try:
                self.answer(server.step(body))
            finally:
                server.left()

        def answer(self, step: str) -> None:
            if step in ("429", "500"):
                self.send_response(int(step))
                if step == "429":
                    self.send_header("Retry-After", "0.1")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")
            elif step == "hang":
                server.over.wait(LIMIT)
            elif step == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            else:
                self.stream(step)

        def stream(self, step: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", "100000" if step == "cut" else str(len(_events(step))))
            self.end_headers()
            self.wfile.write(_events("half")[:200] if step == "cut" else _events(step))

    return Handler


def _events(text: str) -> bytes:
    chunks = [{"role": "assistant", "content": text}, {}]
    lines: list[str] = []
    for place, delta in enumerate(chunks):
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if place else None}
        chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        lines.append(json.dumps({**chunk, "choices": [choice]}))
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    lines.append(json.dumps({**chunk, "choices": [], "usage": usage}))
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
