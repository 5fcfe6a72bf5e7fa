"""An MCP server written by hand, one JSON message a line, so that it can misbehave.

    python scripted.py <how it starts> <folder> [modern]

It keeps what must outlive it in the folder: `calls` has a line for every execution, `tasks/` its tasks,
`pids` its process ids. A tool that waits does so for a file in the folder.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

START, FOLDER, MODERN = sys.argv[1], Path(sys.argv[2]), "modern" in sys.argv[3:]
LOCK = threading.Lock()
TOOLS = [
    *("echo", "add", "gate", "hang", "crash", "garbage", "twice", "strangers", "late", "big", "deep"),
    *("broken", "flood", "picture", "fails", "wrong", "own_error", "task", "task_of_2025", "asks", "grow"),
    *("leaves", "stuck", "samples"),
]
NOISE = (b"DEBUG: here I am", b"{not json", b"[1, 2]", b"\xff\xfe\x00", b"", b'{"jsonrpc": "2.0"}', b"null")
FORM = {"mode": "form", "message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
ASKING = {"a": {"method": "elicitation/create", "params": FORM}}
CACHE = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
added: list[str] = []
cancelled: set[Any] = set()
answers: dict[Any, dict[str, Any]] = {}
deaf = threading.Event()


def write(message: dict[str, Any]) -> None:
    line(json.dumps({"jsonrpc": "2.0", **message}).encode())


def line(data: bytes) -> None:
    with LOCK:
        view = memoryview(data + b"\n")
        while view:
            view = view[os.write(1, view) :]


def log(name: str, text: str) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(text + "\n")


def text(value: str) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": value}]}
    return {**result, "resultType": "complete"} if MODERN else result


def wait_for(name: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not (FOLDER / name).exists() and time.monotonic() < end:
        time.sleep(0.005)


# -- tools


def call(id: Any, params: dict[str, Any]) -> None:
    name, given = params["name"], params.get("arguments") or {}
    log("calls", f"{name} {given.get('mark', '')}".strip())
    if name not in TOOLS + added:
        write({"id": id, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})
        return
    if name in added:
        name = "echo"
    token = (params.get("_meta") or {}).get("progressToken")
    answer = globals()[f"do_{name}"](id, given, token)
    if answer is not None:
        write({"id": id, "result": answer})


def progress(token: Any, done: float, total: float | None = None, message: str = "") -> None:
    params: dict[str, Any] = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    if message:
        params["message"] = message
    write({"method": "notifications/progress", "params": params})


def do_echo(id: Any, given: dict[str, Any], token: Any) -> Any:
    return text(str(given.get("text", "")))


def do_add(id: Any, given: dict[str, Any], token: Any) -> Any:
    return {**text("a sum"), "structuredContent": {"sum": given["a"] + given["b"]}}


def do_gate(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Says how far it is, and waits."""
    progress(token, 1, 4, "at the gate")
    log("waiting", str(given.get("mark", "")))
    wait_for(given.get("gate", "gate"))
    return text(f"through {given.get('mark', '')}".strip())


def do_hang(id: Any, given: dict[str, Any], token: Any) -> Any:
    log("waiting", str(given.get("mark", "")))


def do_crash(id: Any, given: dict[str, Any], token: Any) -> Any:
    os.write(2, b"a wheel came off\n")
    os._exit(7)


def do_garbage(id: Any, given: dict[str, Any], token: Any) -> Any:
    for noise in (
        b"DEBUG: here I am",
        b"{not json",
        b"[1, 2]",
        b"\xff\xfe\x00",
        b"",
        b'{"jsonrpc": "2.0"}',
        b"null",
    ):
        line(noise)
    return text("after the noise")


def do_twice(id: Any, given: dict[str, Any], token: Any) -> Any:
    write({"id": id, "result": text("first")})
    write({"id": id, "result": text("second")})


def do_strangers(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Answers to nobody; with `next`, also to whoever comes next, and is not there yet."""
    for stranger in (10**9, "nobody", -1, None, *([id + 1] if given.get("next") else [])):
        write({"id": stranger, "result": text("not yours")})
    return text("yours")


def do_late(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Ignores the cancellation and answers afterwards."""
    log("waiting", "late")
    end = time.monotonic() + 30
    while id not in cancelled and time.monotonic() < end:
        time.sleep(0.005)
    wait_for("gate")
    log("waiting", "answered late")
    return text("too late")


def do_big(id: Any, given: dict[str, Any], token: Any) -> Any:
    return text("x" * int(given["bytes"]))


def do_deep(id: Any, given: dict[str, Any], token: Any) -> Any:
    depth = int(given["depth"])
    head = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"resultType":"complete",' % id
    line(head + b'"structuredContent":{"a":' + b"[" * depth + b"]" * depth + b"}}}")


def do_broken(id: Any, given: dict[str, Any], token: Any) -> Any:
    line(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[}' % id)


def do_flood(id: Any, given: dict[str, Any], token: Any) -> Any:
    count = int(given["count"])
    for at in range(0, count, 1_000):
        many = [
            json.dumps({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": at + n, "total": count}}).encode()
            for n in range(1_000)
        ]  # fmt: skip
        line(b"\n".join(many))
    return text("dry again")


def do_picture(id: Any, given: dict[str, Any], token: Any) -> Any:
    data = base64.b64encode(bytes(3_000_000)).decode()
    link = {"type": "resource_link", "uri": "file:///a.txt", "name": "a"}
    blob = {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "x/y", "blob": "AAAA"}}
    whole = text("look")
    whole["content"] += [{"type": "image", "data": data, "mimeType": "image/png"}, link, blob]
    return whole


def do_fails(id: Any, given: dict[str, Any], token: Any) -> Any:
    return {**text("the file is not there"), "isError": True}


def do_wrong(id: Any, given: dict[str, Any], token: Any) -> Any:
    write({"id": id, "error": {"code": -32602, "message": "path is missing", "data": {"field": "path"}}})


def do_own_error(id: Any, given: dict[str, Any], token: Any) -> Any:
    write({"id": id, "error": {"code": -32000, "message": "the database is away"}})


def do_asks(id: Any, given: dict[str, Any], token: Any) -> Any:
    return {"resultType": "input_required", "inputRequests": ASKING}


def do_grow(id: Any, given: dict[str, Any], token: Any) -> Any:
    added.append(given["new"])
    if given.get("drop"):
        TOOLS.remove(given["drop"])
    if not given.get("quietly"):
        write({"method": "notifications/tools/list_changed"})
    return text("grown")


def do_leaves(id: Any, given: dict[str, Any], token: Any) -> Any:
    """A child in a session of its own, double-forked, that ignores TERM."""
    script = "trap '' TERM; echo $$ >>\"$0/pids\"; while :; do sleep 0.2; done"
    subprocess.Popen(
        ["setsid", "sh", "-c", 'sh -c "$1" "$0" &', str(FOLDER), script],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ).wait()  # fmt: skip
    return text("left a child")


def do_stuck(id: Any, given: dict[str, Any], token: Any) -> Any:
    """From now on it reads nothing more."""
    deaf.set()
    log("waiting", "stuck")


def do_samples(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Asks its client for something, and says what it was told."""
    params = {"messages": [], "maxTokens": 1}
    write({"id": f"from-{id}", "method": "sampling/createMessage", "params": params})
    end = time.monotonic() + 30
    while f"from-{id}" not in answers and time.monotonic() < end:
        time.sleep(0.005)
    return text("refused" if "error" in answers[f"from-{id}"] else "served")


# -- tasks of its own


def task_file(id: str) -> Path:
    return FOLDER / "tasks" / f"{id.encode().hex()}.json"


def new_task(given: dict[str, Any], token: Any) -> str:
    (FOLDER / "tasks").mkdir(exist_ok=True)
    id = str(given.get("id") or f"task-{os.urandom(8).hex()}")
    half = task_file(id).with_suffix(".half")
    half.write_text(json.dumps(given))
    half.rename(task_file(id))
    log("waiting", f"task {given.get('mark', '')}".strip())
    if given.get("talks"):
        threading.Thread(target=talk, args=(id, given, token), daemon=True).start()
    return id


def talk(id: str, given: dict[str, Any], token: Any) -> None:
    """Progress by the call's token, which lasts as long as the task; and, by 2025-11-25, its status."""
    wait_for("half")
    progress(token, 3, 4, "three of four")
    wait_for(given.get("gate", "gate"))
    if not MODERN:
        write({"method": "notifications/tasks/status", "params": state(id)})


def do_task(id: Any, given: dict[str, Any], token: Any) -> Any:
    return {"resultType": "task", **state(new_task(given, token))}


def do_task_of_2025(id: Any, given: dict[str, Any], token: Any) -> Any:
    return {"task": state(new_task(given, token))}


def state(id: str) -> dict[str, Any]:
    given = json.loads(task_file(id).read_text())
    now = "2026-01-01T00:00:00Z"
    found: dict[str, Any] = {"taskId": id, "createdAt": now, "lastUpdatedAt": now, "status": "working"}
    found |= (
        {"ttlMs": None, "pollIntervalMs": given.get("poll", 20)}
        if MODERN
        else {"ttl": None, "pollInterval": 20}
    )
    if (FOLDER / "cancelled" / id.encode().hex()).exists():
        return {**found, "status": "cancelled"}
    if given.get("asks"):
        return {**found, "status": "input_required"}
    if not (FOLDER / given.get("gate", "gate")).exists():
        return {**found, "statusMessage": "half way"}
    if given.get("fails"):
        error = {"code": -32603, "message": "the task broke"}
        return {**found, "status": "failed", **({"error": error} if MODERN else {})}
    return {**found, "status": "completed", **({"result": result(given)} if MODERN else {})}


def result(given: dict[str, Any]) -> dict[str, Any]:
    answer = text(f"done {given.get('mark', '')}".strip())
    return {**answer, "isError": True} if given.get("tool_fails") else answer


def ask_task(id: Any, method: str, params: dict[str, Any]) -> None:
    task = params["taskId"]
    log("asked", f"{method} {task}")
    if not task_file(task).exists():
        write({"id": id, "error": {"code": -32602, "message": f"Task not found: {task}"}})
    elif method == "tasks/cancel":
        (FOLDER / "cancelled").mkdir(exist_ok=True)
        (FOLDER / "cancelled" / task.encode().hex()).touch()
        write({"id": id, "result": {"resultType": "complete"} if MODERN else state(task)})
    elif method == "tasks/result":
        given = json.loads(task_file(task).read_text())
        if given.get("fails"):
            write({"id": id, "error": {"code": -32603, "message": "the task broke"}})
        else:
            write({"id": id, "result": result(given)})
    else:
        write({"id": id, "result": {**state(task), **({"resultType": "complete"} if MODERN else {})}})


def push_tasks(id: Any, params: dict[str, Any]) -> None:
    """Tells of a task's end, for those whose interval would be too long to see it."""
    ids = (params.get("notifications") or {}).get("taskIds") or []
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
    write(
        {
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"taskIds": ids}, **meta},
        }
    )
    for task in ids:
        wait_for(json.loads(task_file(task).read_text()).get("gate", "gate"))
        write({"method": "notifications/tasks", "params": {**state(task), **meta}})


# -- the protocol


def capabilities() -> dict[str, Any]:
    found: dict[str, Any] = {"tools": {"listChanged": True}}
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
        cancelled.add(params.get("requestId"))
        log("cancels", str(params.get("requestId")))
    elif method is None:
        answers[id] = message
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
        version = "1999-01-01" if START == "version" else "2025-11-25"
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
