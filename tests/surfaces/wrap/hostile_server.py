"""An MCP server that lies: about its tools, in its answers, and in its bytes.

    python hostile_server.py <folder> [silent after a restart]

`starts` in the folder has a line for each start.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
LIES: list[Any] = [
    {"name": "honest", "inputSchema": OBJECT, "outputSchema": OBJECT, "x-more": [1, None, {"ä": 1e3}]},
    {"name": "no-schema"},
    {"name": "odd-schema", "description": 7, "inputSchema": "anything", "outputSchema": [None]},
    {"name": 12, "description": None, "inputSchema": {"$ref": "#"}},
    {"name": "", "inputSchema": {"type": "object", "properties": {"deep": {"allOf": [{"not": {}}] * 3}}}},
]
LATE = {
    "late-bytes": b'{"content":[{"type":"text","text":"\xff\xfe"}]}',
    "late-words": b'"words"',
    "late-null": b"null",
}
late: list[tuple[int, str]] = []  # calls that are answered with these when another says so
waiting: list[Any] = []  # calls that are answered together, the last one first
listings = 0


def line(data: bytes) -> None:
    view = memoryview(data + b"\n")
    while view:
        view = view[os.write(1, view) :]


def say(**message: Any) -> None:
    line(json.dumps({"jsonrpc": "2.0", **message}).encode())


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def called(id: Any, name: str, given: dict[str, Any]) -> None:
    if name == "reversed":
        waiting.append((id, given["n"]))
        if len(waiting) == given["of"]:
            for one, number in reversed(waiting):
                say(id=one, result=text(f"answer {number}"))
            waiting.clear()
    elif name == "half":
        os.write(1, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % id)
    elif name == "rest":
        line(b"]}}")
        say(id=id, result=text("whole again"))
    elif name == "bytes":
        line(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"\xff\xfe"}]}}' % id)
    elif name.startswith("late-"):
        late.append((id, name))
    elif name == "release":
        for one, number in reversed(waiting):
            say(id=one, result=text(f"answer {number}"))
        for one, which in late:
            line(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (one, LATE[which]))
        say(id=id, result=text("released"))
    elif name == "neither":
        say(id=id)
    elif name == "both":
        say(id=id, result=text("a result"), error={"code": 1, "message": "an error"})
    elif name == "words":
        say(id=id, result="words")
    elif name == "wrong-structure":
        say(id=id, result={**text("{}"), "structuredContent": {"n": "not a number"}})
    elif name == "flood":
        for at in range(0, given["count"], 1_000):
            said = {"jsonrpc": "2.0", "method": "notifications/message"}
            many = [
                json.dumps({**said, "params": {"level": "info", "data": f"{at + n} {'x' * 100}"}})
                for n in range(1_000)
            ]
            line("\n".join(many).encode())
        say(id=id, result=text("dry again"))
    elif name == "giant":
        say(id=id, result=text("x" * given["size"]))
    elif name != "never":
        say(id=id, result=text(f"{name} {given.get('n', '')}".strip()))


def main() -> None:
    global listings
    starts = Path(sys.argv[1]) / "starts"
    with starts.open("a") as file:
        file.write(f"{os.getpid()}\n")
    is_silent = "silent" in sys.argv and len(starts.read_text().splitlines()) > 1
    for raw in sys.stdin.buffer:
        asked = json.loads(raw)
        id, method, params = asked.get("id"), asked.get("method"), asked.get("params") or {}
        if method == "initialize" and not is_silent:
            info = {"name": "hostile", "version": "1"}
            version = params.get("protocolVersion", "2025-11-25")
            say(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            listings += 1
            say(id=id, result={"tools": LIES[: 1 if listings == 1 else None]})
        elif method == "tools/call" and params.get("name") == "crash":
            os._exit(9)
        elif method == "tools/call":
            called(id, str(params.get("name")), params.get("arguments") or {})


if __name__ == "__main__":
    main()
