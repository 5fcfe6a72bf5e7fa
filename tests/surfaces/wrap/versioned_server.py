"""A strict MCP server of one version: `python versioned_server.py VERSION LOG [PORT]`, on stdio or on HTTP.

With a handshake it also speaks the versions before its own, and answers nothing before the handshake. Without
one it refuses requests that have no envelope. Every message that it gets is a line of LOG."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
VERSION, LOG = sys.argv[1], sys.argv[2]
IS_MODERN = VERSIONS[-1] <= VERSION
SPOKEN = (VERSION,) if IS_MODERN else VERSIONS[: VERSIONS.index(VERSION) + 1]
PREFIX = "io.modelcontextprotocol/"
LEVELS = ("debug", "info", "warning", "error")
INFO = {"name": "versioned", "version": "1"}
CAPABILITIES = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
TOOL = {"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}
CACHE = {"ttlMs": 0, "cacheScope": "private"}
initialized = threading.Event()
writing = threading.Lock()


def log(message: Any) -> None:
    with writing, open(LOG, "a") as file:
        file.write(json.dumps(message) + "\n")


def error(code: int, text: str, **data: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": text, **({"data": data} if data else {})}}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """None: nothing is answered, or the method streams."""
    log(message)
    method, params = message.get("method"), message.get("params") or {}
    if method == "notifications/initialized":
        initialized.set()
    if "id" not in message or method is None:
        return None
    body = modern(method, params) if IS_MODERN else older(method, params)
    return {"jsonrpc": "2.0", "id": message["id"], **body}


def older(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        wanted = params["protocolVersion"]
        version = wanted if wanted in SPOKEN else VERSION
        return {"result": {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": INFO}}
    if method == "server/discover":
        return error(-32601, "Method not found")
    if not initialized.is_set():
        return error(-32602, "Received a request before initialization was complete")
    if any(name.startswith(PREFIX) for name in params.get("_meta", {})):
        return error(-32602, "An envelope is not known here")
    return done(method, params)


def modern(method: str, params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta", {})
    if method == "initialize":
        return error(-32022, "There is no handshake", supported=SPOKEN, requested=params["protocolVersion"])
    missing = [name for name in ("protocolVersion", "clientCapabilities") if PREFIX + name not in meta]
    if missing:
        return error(-32602, f"The envelope has no {missing[0]}")
    if meta.get(PREFIX + "logLevel", "info") not in LEVELS:
        return error(-32602, "There is no such level")
    if meta[PREFIX + "protocolVersion"] not in SPOKEN and method != "server/discover":
        return error(-32022, "Unsupported", supported=SPOKEN, requested=meta[PREFIX + "protocolVersion"])
    if method == "server/discover":
        found = {"supportedVersions": SPOKEN, "capabilities": CAPABILITIES, "instructions": "Be strict."}
        return {
            "result": {**found, **CACHE, "resultType": "complete", "_meta": {PREFIX + "serverInfo": INFO}}
        }
    if method in ("ping", "logging/setLevel", "resources/subscribe"):
        return error(-32601, f"Method not found: {method}")
    if method == "tools/call" and params["name"] == "asks" and "inputResponses" not in params:
        if gate := params.get("arguments", {}).get("gate"):
            open(gate).close()  # a FIFO: until the test opens its other end
        form = {"type": "object", "properties": {"colour": {"type": "string"}}}
        asks = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": form}}
        return {
            "result": {
                "resultType": "input_required", "inputRequests": {"one": asks}, "requestState": "half way"
            }
        }  # fmt: skip
    body = done(method, params)
    more = CACHE if method == "tools/list" else {}
    return {"result": {**body["result"], **more, "resultType": "complete"}} if "result" in body else body


def done(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        return {"result": {}}
    if method == "tools/list":
        return {"result": {"tools": [TOOL]}}
    if method == "tools/call":
        said = params.get("inputResponses") or params.get("arguments", {})
        if params["name"] == "asks":
            said = {**said, "state": params.get("requestState")}
        return {"result": {"content": [{"type": "text", "text": json.dumps(said)}]}}
    return error(-32601, f"Method not found: {method}")


def told(message: dict[str, Any]) -> list[dict[str, Any]]:
    """What the server says before the answer of a call, or on a stream of changes."""
    method, params = message.get("method"), message.get("params") or {}
    if method == "tools/call":
        token = params.get("_meta", {}).get("progressToken")
        return [notice("notifications/progress", {"progressToken": token, "progress": 1, "total": 2})]
    if method == "subscriptions/listen":
        id = {"_meta": {PREFIX + "subscriptionId": message["id"]}}
        wanted = params["notifications"]
        found = [notice("notifications/subscriptions/acknowledged", {"notifications": wanted, **id})]
        if wanted.get("toolsListChanged"):
            found.append(notice("notifications/tools/list_changed", id))
        for uri in wanted.get("resourceSubscriptions", ()):
            found.append(notice("notifications/resources/updated", {"uri": uri, **id}))
        return found
    if method == "resources/subscribe" and not IS_MODERN:
        return [notice("notifications/resources/updated", {"uri": params["uri"]})]
    return []


def notice(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def on_stdio() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        found = answer(message)
        is_stream = message.get("method") == "subscriptions/listen"
        refused = found is not None and "error" in found and not is_stream
        for one in [] if refused else told(message):
            write(one)
        if found is not None and not is_stream:
            write(found)


class Http(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        version = self.headers.get("mcp-protocol-version")
        if message.get("method") not in ("initialize", "server/discover") and version not in SPOKEN:
            self.reply(400, error(-32600, f"The header names the version {version}"))
            return
        found = answer(message)
        is_stream = message.get("method") == "subscriptions/listen"
        if found is None:
            self.reply(202, None)
        elif "error" in found and not is_stream:
            self.reply(400 if IS_MODERN else 200, found)
        elif is_stream or told(message):
            self.stream(told(message) + ([] if is_stream else [found]), lasts=is_stream)
        else:
            self.reply(200, found)

    def do_GET(self) -> None:
        self.reply(405, None)

    def reply(self, status: int, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        if isinstance(body, dict) and "protocolVersion" in body.get("result", {}):
            self.send_header("mcp-session-id", "one")
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, messages: list[dict[str, Any]], *, lasts: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for one in messages:
            self.wfile.write(b"event: message\ndata: " + json.dumps(one).encode() + b"\n\n")
            self.wfile.flush()
        self.close_connection = True
        if lasts:
            self.connection.recv(1)  # until the client closes it

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    if len(sys.argv) > 3:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), Http).serve_forever()
    else:
        on_stdio()
