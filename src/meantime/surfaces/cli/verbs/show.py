"""`meantime show`: everything about one task."""

from __future__ import annotations

import json

from meantime.surfaces.cli import task_search
from meantime.surfaces.cli.parameter_types import one_task
from meantime.surfaces.cli.verb import as_json, daemon, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.task_format import Wire
from meantime.surfaces.terminal.terminal_text import plain, plain_lines

LINES = 20  # of a long text
INPUTS = {"shell": "command", "watch": "watches"}  # by kind: the name of what it was given


@verb("show")
@one_task
@as_json
def command(ref: str, as_json: bool) -> None:
    """Everything about one task."""
    with_daemon = daemon()
    task = task_search.task(with_daemon, ref)
    if as_json:
        say_json(task)
        return
    facts = _facts(task)
    if task.get("resumeCount"):
        runs = with_daemon.get(f"/v1/tasks/{part(task['id'])}/runs")["runs"]
        facts["runs"] = "\n".join(_run(run) for run in runs)
    wide = max(len(name) for name in facts)
    for name, value in facts.items():
        first, *rest = _shortened(value)
        echo("\n".join([f"{name:<{wide}}  {first}", *(" " * (wide + 2) + line for line in rest)]))
    if task.get("question"):
        echo(f"  meantime answer {task_format.short(task['id'])} TEXT")


def _facts(task: Wire) -> dict[str, str]:
    ended = task["state"] not in task_format.ACTIVE
    usual: Wire = task.get("usual") or {}
    started = (task.get("row") or task).get("startedAt")  # the task itself has a time for one in a queue, too
    age = task_format.age(task)
    facts = {
        "id": task["id"],
        "task": task_format.title(task),
        "status": task_format.paint(task_format.status(task), task),
        "now": "" if ended else task_format.doing(task.get("row") or task),
        "asks": _question(task.get("question")),
        "next": plain_lines(task.get("followUp") or ""),
        "agent" if task["agent"] != task["kind"] else "kind": plain(task["agent"]),
        INPUTS.get(task["kind"], "prompt"): plain_lines(task.get("prompt") or ""),
        "on": plain(task.get("worker") or task.get("place") or ""),
        "thread": plain(task["parentSessionID"]),
        "batch": plain(task.get("batchId") or ""),
        "parent": plain(task.get("parentTaskID") or ""),
        "created": _at(task.get("createdAt")),
        "started": _at(started) if task["state"] != "queued" else "",
        "ended": _at(task.get("completedAt")),
        "took" if ended else "for": "" if ended and not started else task_format.span(age),
        "usual": task_format.usually(
            usual.get("ms"), 0.0 if task["state"] == "queued" or not started else age
        ),
        "told": _told(task),
        "exit code": "" if task.get("exitCode") is None else str(task["exitCode"]),
        "error": plain_lines(task.get("error") or ""),
        "detail": plain_lines(task.get("errorDetail") or ""),
        "result": plain_lines(task.get("result") or ""),
    }
    return {name: value for name, value in facts.items() if value.strip()}


def _question(question: Wire | None) -> str:
    """The question, and how to answer it."""
    if not question:
        return ""
    given = question.get("arguments")
    lines = [plain_lines(question["text"])]
    if given is not None:
        lines.append(plain(json.dumps(given, ensure_ascii=False))[:500])
    for one in question["choices"]:
        label = "" if one["label"] == one["id"] else f": {plain(one['label'])}"
        lines.append(f"  {plain(one['id'])}{label}")
    return "\n".join(lines)


def _told(task: Wire) -> str:
    """Whether the conversation was told of the last run, or that nobody is told."""
    row: Wire = task.get("row") or {}  # an older daemon has none
    if not row.get("notify", True):
        return "nobody"
    deliveries: list[Wire] = task.get("delivery") or []
    last = deliveries[-1] if deliveries else None
    if last is None or last["state"] == "muted":
        return ""
    state, turn = plain(last["state"]), last.get("turnNumber")
    parts = [state, f"turn {turn}" if turn else "", _at(last.get("toldAt")), plain(last.get("reason") or "")]
    return " · ".join(part for part in parts if part)


def _run(task: Wire) -> str:
    took = task_format.span(task_format.age(task))
    return f"{task_format.status(task)}  {took}  {plain(task.get('prompt') or '')[:60]}"


def _at(iso: object) -> str:
    moment = task_format.moment(iso)
    return "" if moment is None else task_format.local(moment)


def _shortened(text: str) -> list[str]:
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= LINES:
        return lines
    half = LINES // 2
    return [*lines[:half], f"… {len(lines) - LINES} lines …", *lines[-half:]]
