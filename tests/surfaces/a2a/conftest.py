"""The server with its scripted agent, and a client that speaks JSON-RPC by hand."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from surfaces.agent_protocol.conftest import Site, site

__all__ = ["Site", "site"]


async def call(site: Site, method: str, params: Any, **more: Any) -> dict[str, Any]:
    """The whole answer of JSON-RPC."""
    body = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
    answer = await site.client.post("/a2a/explore", json=body, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def result(site: Site, method: str, params: Any, **more: Any) -> Any:
    found = await call(site, method, params, **more)
    assert "result" in found, found
    return found["result"]


def saying(text: str, *, at_once: bool = False, **message: Any) -> dict[str, Any]:
    said = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}], **message}
    return {"message": said, "configuration": {"returnImmediately": at_once}}


class Webhook:
    """Takes notifications on a real port, with the statuses that it is told to answer."""

    def __init__(self, url: str, got: list[tuple[dict[str, str], Any]], statuses: list[int]) -> None:
        self.url, self.got, self.statuses = url, got, statuses


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.append((dict(self.headers), json.loads(body)))
            self.send_response(made.statuses.pop(0) if made.statuses else 200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Webhook(f"http://127.0.0.1:{server.server_port}/told?by=a2a", [], [])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()
