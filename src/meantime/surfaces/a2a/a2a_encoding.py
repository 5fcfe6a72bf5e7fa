"""Tasks, messages, events and cards, as A2A 1.0 has them on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from meantime.kernel.durations import iso
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Kind, PlacedLine
from meantime.kernel.model import Completed
from meantime.kernel.notices import payload_text
from meantime.ports.owner import AgentAbout
from meantime.surfaces.agent_runs.numbered_run import NumberedRun

Wire = dict[str, Any]
PROTOCOL = "1.0"
TEXT = "text/plain"
STATES = {
    Status.QUEUED: "TASK_STATE_SUBMITTED",
    Status.RUNNING: "TASK_STATE_WORKING",
    Status.CANCELLING: "TASK_STATE_WORKING",
    Status.WAITING: "TASK_STATE_INPUT_REQUIRED",
    Status.COMPLETED: "TASK_STATE_COMPLETED",
    Status.FAILED: "TASK_STATE_FAILED",
    Status.LOST: "TASK_STATE_FAILED",
    Status.TIMED_OUT: "TASK_STATE_FAILED",
    Status.CANCELLED: "TASK_STATE_CANCELED",
}


def wire_a2a_task(run: NumberedRun, lines: Iterable[PlacedLine], history: int | None = None) -> Wire:
    """The newest `history` messages; None is all of them."""
    found: Wire = {"id": run.id, "contextId": run.thread, "status": status(run)}
    messages = [told for one in lines if (told := line_message(run, one)) is not None]
    if history is not None:
        messages = messages[-history:] if history else []
    if messages:
        found["history"] = messages
    artifact = result_artifact(run)
    return found if artifact is None else {**found, "artifacts": [artifact]}


def status(run: NumberedRun) -> Wire:
    found: Wire = {"state": STATES[run.status]}
    at = iso(run.task.updated_at)
    if at is not None:
        found["timestamp"] = at
    text = _status_text(run)
    return {**found, "message": agent_message(run, f"{run.id}.status", text)} if text else found


def _status_text(run: NumberedRun) -> str:
    question = run.task.question
    if run.waits and question is not None:
        offered = ", ".join(choice.id for choice in question.choices)
        return f"{question.text}\nAnswer with one of: {offered}." if offered else question.text
    return run.error[1] if run.error is not None else ""


def result_artifact(run: NumberedRun) -> Wire | None:
    if run.is_pending or not isinstance(run.task.outcome, Completed):
        return None
    parts = [{"text": payload_text(run.task.outcome)}]
    return {"artifactId": f"{run.id}.result", "name": "result", "parts": parts}


def line_message(run: NumberedRun, placed: PlacedLine) -> Wire | None:
    """A line that somebody said; tool calls and thoughts stay with the agent."""
    line = placed.line
    if line.kind is not Kind.TEXT or line.role not in ("user", "assistant") or not line.text:
        return None
    id = line.id or f"{run.task.id}.{placed.place}"
    return message(run, id, line.text, "ROLE_USER" if line.role == "user" else "ROLE_AGENT")


def agent_message(run: NumberedRun, id: str, text: str) -> Wire:
    return message(run, id, text, "ROLE_AGENT")


def message(run: NumberedRun, id: str, text: str, role: str) -> Wire:
    about = {"messageId": id, "taskId": run.id, "contextId": run.thread}
    return {**about, "role": role, "parts": [{"text": text}]}


def status_update(run: NumberedRun, given: Wire) -> Wire:
    return {"statusUpdate": {"taskId": run.id, "contextId": run.thread, "status": given}}


def artifact_update(run: NumberedRun, artifact: Wire) -> Wire:
    about = {"taskId": run.id, "contextId": run.thread, "artifact": artifact}
    return {"artifactUpdate": {**about, "append": False, "lastChunk": True}}


def agent_card(agent: AgentAbout, url: str, version: str) -> Wire:
    described = agent.description or f"The agent {agent.name}."
    skill = {"id": agent.name, "name": agent.name, "description": described, "tags": ["agent"]}
    return {
        "name": agent.name,
        "description": described,
        "version": version or "0",
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": PROTOCOL}],
        "capabilities": {"streaming": True, "pushNotifications": True, "extendedAgentCard": False},
        "defaultInputModes": [TEXT],
        "defaultOutputModes": [TEXT],
        "skills": [skill],
        "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
    }
