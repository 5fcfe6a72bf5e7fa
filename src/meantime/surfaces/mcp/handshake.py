"""The first requests of an MCP client, answered without the SDK: to load it takes as long as 50 starts of
Python, and a client asks nothing but who we are and which tools there are.

Only a request that the SDK would accept is answered here, and with the SDK's own answer
(tests/surfaces/mcp/test_handshake.py compares them); anything else is left to the SDK. Standard library only.
"""

from __future__ import annotations

import json

from .client_messages import are_capabilities, is_client, is_filter, is_meta, is_page, parsed

TYPE_CHECKING = False  # to load `typing` takes time, and the client waits
if TYPE_CHECKING:
    from typing import Any

NAME = "meantime"
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # begin with `initialize`
NEWEST = "2026-07-28"  # has no handshake: every request carries this envelope
_META = "io.modelcontextprotocol/"
VERSION, CLIENT, CAPABILITIES = f"{_META}protocolVersion", f"{_META}clientInfo", f"{_META}clientCapabilities"


class Handshake:
    """Where one client stands. `replay` is what the SDK's server must be told, too, to stand there."""

    def __init__(self, version: str, instructions: str, tools: list[dict[str, Any]]) -> None:
        self._server = {"name": NAME, "version": version}
        self._instructions = instructions
        self._tools = tools
        self._era = ""  # "older" or "newest", by the first request
        self._greeted = False
        self._noted = False  # it has said that it has our welcome
        self._listens = False  # to a stream of changes
        self._left = False  # something was left to the SDK: it hears all in the order in which it came
        self._over = False
        self.replay: list[bytes] = []
        self.listed = False  # the client has its tools

    def answer(self, line: bytes) -> bytes | None:
        """The line to send back, empty for a notification. None: the SDK must have this line."""
        request = None if self._over else parsed(line)
        reply = None if request is None else self._reply(request, line)
        if request is None or reply is None:
            self._left = True
            # Nothing is answered past what may change how we stand.
            self._over = self._over or request is None or not self._era or request["method"] == "initialize"
            return None
        self.listed = self.listed or request["method"] == "tools/list"
        if not reply:
            return b""
        whole = {"jsonrpc": "2.0", **reply}
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _reply(self, request: dict[str, Any], line: bytes) -> dict[str, Any] | None:
        method, params = request["method"], request.get("params", {})
        if "id" not in request:
            return self._notified(method, params, line)
        era = "newest" if VERSION in params.get("_meta", {}) else "older"
        if (self._left and not self._era) or era != (self._era or era):
            return None
        if era == "newest" and method == LISTEN:
            reply = self._acknowledged(request["id"], params)
        else:
            result = self._newest(method, params) if era == "newest" else self._older(method, params)
            reply = None if result is None else {"id": request["id"], "result": result}
        if reply is not None and (not self._era or method in ("initialize", LISTEN)):
            self.replay.append(line)
            self._era = era
        return reply

    def _notified(self, method: str, params: dict[str, Any], line: bytes) -> dict[str, Any] | None:
        """That it has our answer: once, and only right after it. All other notifications are the SDK's."""
        if method != "notifications/initialized" or params or not self._greeted or self._left or self._noted:
            return None
        self._noted = True
        self.replay.append(line)
        return {}

    def _older(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if not is_meta(params.get("_meta", {})):
            return None
        if method == "ping":
            return {}
        if method == "initialize" and not self._greeted and not self._left and _is_hello(params):
            self._greeted = True
            return self._welcome(params["protocolVersion"])
        if method == "tools/list" and self._greeted and is_page(params):
            return {"tools": self._tools}
        return None

    def _acknowledged(self, id: object, params: dict[str, Any]) -> dict[str, Any] | None:
        """A stream of changes to lists, which never change here. Claude Code opens one, and asks for nothing
        else before it is acknowledged. One that asks for more is the SDK's."""
        if self._left or self._listens or not self._is_enveloped(params) or not is_filter(params):
            return None
        self._listens = True
        given = {"notifications": {}, "_meta": {f"{_META}subscriptionId": id}}
        return {"method": ACKNOWLEDGED, "params": given}

    def _is_enveloped(self, params: dict[str, Any]) -> bool:
        meta = params["_meta"]
        known = is_meta(meta) and meta[VERSION] == NEWEST and is_client(meta.get(CLIENT, self._server))
        return known and f"{_META}logLevel" not in meta and are_capabilities(meta.get(CAPABILITIES))

    def _newest(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if not self._is_enveloped(params):
            return None
        shared = {
            "cacheScope": "private",
            "ttlMs": 0,
            "resultType": "complete",
            "_meta": {f"{_META}serverInfo": self._server},
        }
        if method == "server/discover":
            return {**shared, **self._discovered()}
        if method == "tools/list" and is_page(params):
            without = [
                {name: part for name, part in tool.items() if name != "execution"} for tool in self._tools
            ]
            return {**shared, "tools": without}
        return None

    def _welcome(self, version: str) -> dict[str, Any]:
        return {
            "protocolVersion": version,
            "capabilities": {
                "resources": {"listChanged": False, "subscribe": True},
                "tools": {"listChanged": False},
                "tasks": {"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}},
            },
            "serverInfo": self._server,
            "instructions": self._instructions,
        }

    def _discovered(self) -> dict[str, Any]:
        return {
            "supportedVersions": [NEWEST],
            "capabilities": {
                "resources": {"listChanged": True, "subscribe": True},
                "tools": {"listChanged": True},
                "extensions": {f"{_META}tasks": {}},
            },
            "instructions": self._instructions,
        }


def _is_hello(params: dict[str, Any]) -> bool:
    known = params.get("protocolVersion") in OLDER
    return known and is_client(params.get("clientInfo")) and are_capabilities(params.get("capabilities"))
