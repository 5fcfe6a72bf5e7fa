"""The tools of the scripted server, most of which do something wrong."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from typing import Any

from speaking import FOLDER, answers, cancelled, deaf, line, log, progress, text, wait_for, wait_heard, write
from working import do_late_task, do_task, do_task_of_2025

__all__ = ["do_late_task", "do_task", "do_task_of_2025"]
NOISE = (b"DEBUG: here I am", b"{not json", b"[1, 2]", b"\xff\xfe\x00", b"", b'{"jsonrpc": "2.0"}', b"null")
FORM = {"mode": "form", "message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
ASKING = {"a": {"method": "elicitation/create", "params": FORM}}
added: list[str] = []


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
    for noise in NOISE:
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
    wait_heard(lambda: id in cancelled)
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
    return {**text(given.get("text", "the file is not there")), "isError": True}


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
    wait_heard(lambda: f"from-{id}" in answers)
    return text("refused" if "error" in answers[f"from-{id}"] else "served")


def do_elicits(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Waits at the gate, asks its client's person, and says what it was told."""
    wait_for("gate")
    schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
    params = {"message": "Which colour?", "requestedSchema": schema}
    write({"id": f"from-{id}", "method": "elicitation/create", "params": params})
    wait_heard(lambda: f"from-{id}" in answers)
    said = answers[f"from-{id}"].get("result", {})
    return text(f"{said.get('action')} {said.get('content')}")


def do_takes_back(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Asks its client's person, and goes on without an answer."""
    wait_for("ask")
    params = {"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {}}}
    write({"id": f"from-{id}", "method": "elicitation/create", "params": params})
    wait_for("enough")
    write({"method": "notifications/cancelled", "params": {"requestId": f"from-{id}"}})
    wait_for("gate")
    return text("without an answer")


TOOLS = [name.removeprefix("do_") for name in list(globals()) if name.startswith("do_")]
