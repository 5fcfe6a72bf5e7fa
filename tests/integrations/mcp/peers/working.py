"""Tasks of the scripted server's own, by both protocols. They are kept in files, and outlive it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from speaking import FOLDER, MODERN, cancelled, log, progress, text, wait_for, wait_heard, write


def task_file(id: str) -> Path:
    return FOLDER / "tasks" / f"{id.encode().hex()}.json"


def answer_file(id: str) -> Path:
    """The answers of a client to the task."""
    return task_file(id).with_suffix(".answer")


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


def do_late_task(id: Any, given: dict[str, Any], token: Any) -> Any:
    """Makes a task when the call has been cancelled."""
    log("waiting", "late task")
    wait_heard(lambda: id in cancelled)
    return {"task": state(new_task(given, token))}


def state(id: str) -> dict[str, Any]:
    given = json.loads(task_file(id).read_text())
    now = "2026-01-01T00:00:00Z"
    found: dict[str, Any] = {"taskId": id, "createdAt": now, "lastUpdatedAt": now, "status": "working"}
    poll = given.get("poll", 20)
    found |= {"ttlMs": None, "pollIntervalMs": poll} if MODERN else {"ttl": None, "pollInterval": poll}
    if (FOLDER / "cancelled" / id.encode().hex()).exists():
        return {**found, "status": "cancelled"}
    if given.get("asks"):
        return {**found, "status": "input_required"}
    if given.get("elicits") and not answer_file(id).exists():
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}}
        asked = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": schema}}
        return {**found, "status": "input_required", "inputRequests": {"one": asked}}
    if not (FOLDER / given.get("gate", "gate")).exists():
        return {**found, "statusMessage": "half way"}
    if given.get("elicits"):
        given["mark"] = answer_file(id).read_text()
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
    elif method == "tasks/update":
        half = answer_file(task).with_suffix(".half-answer")
        half.write_text(json.dumps(params["inputResponses"]["one"]["content"]))
        half.rename(answer_file(task))
        write({"id": id, "result": {"resultType": "complete"}})
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
