"""An MCP server over HTTP that asks for a login: `python guarded_server.py PORT TOKEN`."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

PORT, TOKEN = sys.argv[1:]
GREETED: list[str] = []  # the ends of the tokens with which a handshake was made
METADATA = f"http://127.0.0.1:{PORT}/.well-known/oauth-protected-resource/mcp"
CHALLENGE = f'Bearer error="invalid_token", resource_metadata="{METADATA}"'


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        shown = self.headers.get("authorization", "")
        if not shown.startswith(f"Bearer {TOKEN}"):
            self.reply(401, {"error": "invalid_token"}, {"WWW-Authenticate": CHALLENGE})
        elif "id" not in message:
            self.reply(202, None)
        else:
            self.reply(200, {"jsonrpc": "2.0", "id": message["id"], "result": result(message, shown)})

    def do_GET(self) -> None:
        if self.path == urlsplit(METADATA).path:
            own = f"http://127.0.0.1:{PORT}"
            self.reply(200, {"resource": f"{own}/mcp", "authorization_servers": [own]})
        else:
            self.reply(405, None)

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, said in {**(headers or {}), "content-type": "application/json"}.items():
            self.send_header(name, said)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def result(message: dict[str, Any], shown: str) -> dict[str, Any]:
    """A call answers with the end of the token: so a test sees which one came."""
    shown = shown.removeprefix(f"Bearer {TOKEN}")
    if message["method"] == "initialize":
        GREETED.append(shown)
        version = message["params"]["protocolVersion"]
        info = {"name": "guarded", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if message["method"] == "tools/list":
        return {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
    said = " ".join(GREETED) if message["params"].get("name") == "greeted" else shown
    return {"content": [{"type": "text", "text": said}]}


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(PORT)), Http).serve_forever()
