"""Our tasks in the words of seed 003: whose tool they are of, how they stand, and what they ended with."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import Any, cast

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, Json, Outcome, Output, Task, TimedOut
from meantime.kernel.notices import broke_off

from . import cli_command, jaato_texts

FUNCTIONS, AGENTS = "tools", "agents"  # the plugins of what has none: registered functions, agents by name
ESTIMATE = "estimate"  # of a task's meta
NOTE = "timeout_note"
WORDS = MappingProxyType(
    {
        Status.QUEUED: "pending",
        Status.RUNNING: "running",
        Status.WAITING: "running",
        Status.CANCELLING: "running",
        Status.COMPLETED: "completed",
        Status.FAILED: "failed",
        Status.CANCELLED: "cancelled",
        Status.TIMED_OUT: "timeout",
        Status.LOST: "failed",
    }
)


def origin(task: Task) -> tuple[str, str]:
    """Its plugin and its tool: those that it was started with, or its work's."""
    plugin, tool = task.meta.get("plugin"), task.meta.get("tool")
    if isinstance(plugin, str) and isinstance(tool, str):
        return plugin, tool
    work = task.work
    if work.kind == "shell":
        return cli_command.PLUGIN, cli_command.TOOL
    if work.kind == "tool":
        return named(work.name)
    if work.kind == "agent":
        return AGENTS, work.name
    return FUNCTIONS, work.name.rpartition(":")[2]


def named(tool: str) -> tuple[str, str]:
    """A tool of an MCP server is "server/tool", and its server is its plugin."""
    server, slash, name = tool.partition("/")
    return (server, name) if slash else (FUNCTIONS, tool)


def full_name(plugin: str, tool: str) -> str:
    return tool if plugin == FUNCTIONS else f"{plugin}/{tool}"


def estimate(task: Task) -> float | None:
    """Seconds, as they were when the task was started; for a command that was started elsewhere, by what it
    is. A plugin's own estimates learn.
    """
    kept = task.meta.get(ESTIMATE)
    if isinstance(kept, int | float) and not isinstance(kept, bool):
        return kept
    given = task.work.input
    if task.work.kind != "shell" or not isinstance(given, dict):
        return None
    return cli_command.guess(cast("dict[str, Json]", given).get("command"))


def created_at(task: Task) -> str:
    """Local and without a zone, as the seed's own `datetime.now()`."""
    return datetime.fromtimestamp(task.created_at).isoformat()


def row(task: Task) -> dict[str, Any]:
    return jaato_texts.one(task.id, *origin(task), created_at(task), estimate(task))


def result(task: Task, output: Output | None) -> dict[str, Any]:
    """The status of an active task; for a result over the limits, its two ends and the file."""
    found: Any = None
    if task.outcome is not None:
        found = cli_command.shown(task.outcome) if task.work.kind == "shell" else output and output.value
    plugin = origin(task)[0]
    seconds = task.run.duration
    answer = jaato_texts.result(task.id, plugin, WORDS[task.status], found, error_of(task.outcome), seconds)
    answer = noted(task, answer)
    spill = task.outcome.spill if task.outcome is not None else None
    return answer if spill is None else {**answer, "result_file": spill.path}


def noted(task: Task, answer: dict[str, Any]) -> dict[str, Any]:
    """The seed's dictionary, and one key more where the timeout is less than what was asked for."""
    return {**answer, NOTE: task.run.timeout_note} if task.run.timeout_note else answer


def unfinished(outcome: Outcome) -> dict[str, Any]:
    """The answer of a command that was waited for and did not complete: its exit code, or why there is
    none; its output in any case."""
    found = cli_command.exit_of(outcome) if isinstance(outcome, Failed) else None
    if found is not None:
        return found
    return {"error": error_of(outcome), "output": cli_command.shown(outcome)}


def error_of(outcome: Outcome | None) -> str | None:
    match outcome:
        case None | Completed():
            return None
        case Failed():
            return outcome.message
        case Cancelled():
            by = f" by {outcome.by}" if outcome.by else ""
            failed = f" {broke_off(outcome)}" if outcome.error else ""
            return f"The task was cancelled{by}." + _left_behind(outcome.abandoned) + failed
        case TimedOut():
            return f"The task did not end within {outcome.seconds:g} s." + _left_behind(outcome.abandoned)
        case _:
            return outcome.reason


def stopped(task: Task) -> bool:
    """Whether a cancel has done its work: it ended, however, and nothing of it was left behind."""
    return task.ended and not getattr(task.outcome, "abandoned", False)


def _left_behind(abandoned: bool) -> str:
    return " It would not stop and was left behind." if abandoned else ""
