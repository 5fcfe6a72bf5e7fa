"""An MCP server written by hand, one JSON message a line, so that it can misbehave.

    python scripted.py <how it starts> <folder> [modern]

It keeps what must outlive it in the folder: `calls` has a line for every execution, `tasks/` its tasks,
`pids` its process ids. A tool that waits does so for a file in the folder.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from doing import TOOLS, added, call
from speaking import MODERN, START, answers, cancelled, deaf, heard, line, log, write
from working import ask_task, push_tasks

NEWEST = "2025-11-25"  # with a handshake
CACHE = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}


def capabilities() -> dict[str, Any]:
    found: dict[str, Any] = {"tools": {"listChanged": True}}
    if START == "taskless":
        return found
    if MODERN:
        return {**found, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    return {**found, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}


def listed(name: str) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": name,
        "description": f"It does {name}.",
        "inputSchema": {"type": "object"},
    }
    if name == "task_of_2025":
        tool["execution"] = {"taskSupport": "required"}
    return tool


def take(message: dict[str, Any]) -> None:
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    info = {"name": "scripted", "version": "1"}
    if method == "notifications/cancelled":
        with heard:
            cancelled.add(params.get("requestId"))
            heard.notify_all()
        log("cancels", str(params.get("requestId")))
    elif method is None:
        with heard:
            answers[id] = message
            heard.notify_all()
    elif id is None:
        return
    elif method == "server/discover" and MODERN:
        answer = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities(),
            "resultType": "complete",
        }
        write({"id": id, "result": {**answer, "ttlMs": 0, "cacheScope": "private", "serverInfo": info}})
    elif method == "initialize" and not MODERN:
        if START == "silent":
            return
        newest = "1999-01-01" if START == "version" else NEWEST
        version = min(newest, params.get("protocolVersion", newest))  # a client may know an older one only
        write(
            {
                "id": id,
                "result": {"protocolVersion": version, "capabilities": capabilities(), "serverInfo": info},
            }
        )
    elif method == "tools/list":
        log("listings", "")
        tools = [listed(name) for name in TOOLS + added]
        write({"id": id, "result": {"tools": tools, **(CACHE if MODERN else {})}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(id, params), daemon=True).start()
    elif method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        log("lasting", f"{method} {params.get('uri', params.get('level'))}")
        write({"id": id, "result": {}})
        if method == "resources/subscribe":
            write({"method": "notifications/resources/updated", "params": {"uri": params["uri"]}})
    elif method.startswith("tasks/"):
        ask_task(id, method, params)
    elif method == "subscriptions/listen" and MODERN:
        threading.Thread(target=push_tasks, args=(id, params), daemon=True).start()
    else:
        write({"id": id, "error": {"code": -32601, "message": f"Method not found: {method}"}})


def main() -> None:
    log("pids", str(os.getpid()))
    if START == "dies":
        os.write(2, b"Traceback\nKeyError: 'TOKEN'\n")
        sys.exit(3)
    if START == "noisy":
        for noise in range(50):
            line(b"booting %d" % noise)
    for raw in sys.stdin.buffer:
        take(json.loads(raw))
        if deaf.is_set():
            threading.Event().wait()
    if START == "clings":
        threading.Event().wait()  # also when nobody listens any more


if __name__ == "__main__":
    main()
