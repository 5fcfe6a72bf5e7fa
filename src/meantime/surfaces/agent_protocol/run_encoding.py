"""Runs, threads, states and messages, as Agent Protocol has them on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from meantime.kernel.durations import iso
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Kind, PlacedLine
from meantime.kernel.model import Completed, Json, Task
from meantime.kernel.notices import payload_text
from meantime.surfaces.agent_runs.numbered_run import NumberedRun
from meantime.surfaces.http.task_encoding import prompt_of

from .run_requests import META

Wire = dict[str, Any]
AGENT_NODE = "agent"  # the one node of a graph, for clients that name one
_RUN_STATUSES = {
    Status.QUEUED: "pending",
    Status.RUNNING: "running",
    Status.CANCELLING: "running",
    Status.WAITING: "success",  # only the thread says that it is interrupted
    Status.COMPLETED: "success",
    Status.FAILED: "error",
    Status.LOST: "error",
    Status.TIMED_OUT: "timeout",
    Status.CANCELLED: "interrupted",
}
_THREAD_STATUSES = {
    Status.WAITING: "interrupted", Status.FAILED: "error", Status.LOST: "error", Status.TIMED_OUT: "error",
    Status.COMPLETED: "idle", Status.CANCELLED: "idle",
}  # fmt: skip


_NO_STATE: Wire = {"checkpoint": None, "state": None, "result": None}


def wire_run(run: NumberedRun) -> Wire:
    task = run.task
    found: Wire = {
        "run_id": run.id,
        "thread_id": run.thread,
        "assistant_id": task.work.name,
        "created_at": iso(task.run.queued_at or task.created_at),
        "updated_at": iso(task.updated_at),
        "status": _RUN_STATUSES[run.status],
        "metadata": _metadata(task),
        "multitask_strategy": "enqueue",
    }
    failure = failure_of(run)
    return found if failure is None else {**found, "error": f"{failure[0]}: {failure[1]}"}


def failure_of(run: NumberedRun) -> tuple[str, str] | None:
    """The code and the text of an ending that is an error. A cancelled run is interrupted instead."""
    return None if run.status is Status.CANCELLED else run.error


def _metadata(task: Task) -> Json:
    return task.meta.get(META) or {}


def thread_status(task: Task | None) -> str:
    return "idle" if task is None else _THREAD_STATUSES.get(task.status, "busy")


def interrupts(task: Task | None) -> list[Wire]:
    """The open question, which `command: {"resume": …}` answers."""
    if task is None or task.status is not Status.WAITING or task.question is None:
        return []
    question = task.question
    value: Wire = {"question": question.text, "kind": question.kind}
    if question.choices:
        value["choices"] = [{"id": one.id, "label": one.label or one.id} for one in question.choices]
    if question.kind == "permission":
        value |= {"tool": question.subject, "arguments": question.arguments}
    return [{"id": question.id, "value": value}]


def values_of(task: Task | None, lines: Iterable[PlacedLine]) -> Wire:
    """The messages of the conversation: what clients call its values."""
    if task is None:
        return {"messages": []}
    messages = [message for one in lines if (message := wire_message(task, one)) is not None]
    return {"messages": messages or _without_lines(task)}


def wire_message(task: Task, placed: PlacedLine) -> Wire | None:
    """One line as a message of LangChain; None for a thought, which is not part of the conversation."""
    line, id = placed.line, placed.line.id or f"{task.id}.{placed.place}"
    match line.kind:
        case Kind.THOUGHT:
            return None
        case Kind.CALL:
            call = {"name": line.tool, "args": _arguments(line.arguments), "id": line.call or id}
            return {"type": "ai", "content": "", "id": id, "tool_calls": [{**call, "type": "tool_call"}]}
        case Kind.RESULT:
            told = {"type": "tool", "content": line.text, "id": id, "name": line.tool}
            return {**told, "tool_call_id": line.call or id, "status": "error" if line.failed else "success"}
        case _:
            return _message(line.role, line.text, id)


def _message(role: str, text: str, id: str) -> Wire:
    match role:
        case "user":
            return {"type": "human", "content": text, "id": id}
        case "assistant":
            return {"type": "ai", "content": text, "id": id, "tool_calls": []}
        case _:
            return {"type": "system", "content": text, "id": id}


def _arguments(given: Json) -> Wire:
    if isinstance(given, dict):
        return cast("Wire", given)
    return {} if given is None else {"arguments": given}


def _without_lines(task: Task) -> list[Wire]:
    """Where the runner keeps no conversation: the prompt, and the result."""
    found = [_message("user", task.run.prompt or prompt_of(task), f"{task.id}.prompt")]
    if isinstance(task.outcome, Completed):
        found.append(_message("assistant", payload_text(task.outcome), f"{task.id}.result"))
    return found


def wire_state(thread: str, task: Task | None, values: Wire) -> Wire:
    paused = interrupts(task)
    run = None if task is None else NumberedRun(task, task.run.number)
    busy = run is not None and not run.ended
    checkpoint = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": _checkpoint(task)}
    failure = None if run is None else failure_of(run)
    node = {"name": AGENT_NODE, "error": failure and failure[1], "interrupts": paused}
    return {
        "values": values,
        "next": [AGENT_NODE] if busy else [],
        "checkpoint": {**checkpoint, "checkpoint_map": None},
        "metadata": {} if run is None else {"run_id": run.id, "source": "loop"},
        "created_at": None if task is None else iso(task.updated_at),
        "parent_checkpoint": None,
        "tasks": [{"id": run.id, **node, **_NO_STATE}] if run is not None and (busy or failure) else [],
        "interrupts": paused,
    }


def _checkpoint(task: Task | None) -> str | None:
    return None if task is None else f"{task.id}.{task.version}"
