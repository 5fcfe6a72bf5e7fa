"""A server that answers a call with a task of its own: which one, what it says, how it ended.

Two shapes are known. By the extension io.modelcontextprotocol/tasks (SEP-2663) the task lies flat in the
answer, and `tasks/get` has the result. In the protocol of 2025-11-25 it is under `task`, and the result is
fetched with `tasks/result`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import Report
from meantime.ports import clock as clocks
from meantime.ports.clock import Clock
from meantime.system.platform import SHORTEST, short_boot

from .tool_results import report_of, report_of_error

EXTENSION, OLDER = "tasks", "tasks2025"
SOONEST, LATEST, USUAL = 0.1, 30.0, 1.0  # seconds between two looks: bounds, and where the server says none
MOST_ID = 128  # characters of a session's id in the ledger
_AT = ":at:"  # no id has it: others than plain ones are written in base64
_PLAIN = re.compile(r"[A-Za-z0-9._-]+\Z")


class RemoteTask(Struct, frozen=True):
    """A task of the server's, by which rules it is asked about, and since when, where that is known."""

    id: str
    kind: str
    began: str = ""

    @property
    def session(self) -> str | None:
        """The data that the ledger keeps to find it again; None for an id that does not fit."""
        if _PLAIN.match(self.id):
            text = f"{self.kind}:{self.id}"
        else:
            text = f"{self.kind}:b:{base64.urlsafe_b64encode(self.id.encode()).decode().rstrip('=')}"
        whole = f"{text}{_AT}{self.began}" if self.began else text
        return next((one for one in (whole, text) if len(one) <= MOST_ID), None)


def remembered(session: str) -> RemoteTask | None:
    """The inverse of `Remote.session`."""
    named, at, began = session.rpartition(_AT)
    kind, _, id = (named if at else session).partition(":")
    began = began if at else ""
    if kind not in (EXTENSION, OLDER) or not id:
        return None
    if not id.startswith("b:"):
        return RemoteTask(id, kind, began)
    coded = id[2:]
    try:
        id = base64.b64decode(coded + "=" * (-len(coded) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        return None
    return RemoteTask(id, kind, began) if id else None


def remote_of(answer: Mapping[str, Any]) -> RemoteTask | None:
    """None where the answer is the result itself."""
    if answer.get("resultType") == "task":
        return _remote(answer, EXTENSION)
    if isinstance(answer.get("task"), Mapping) and "content" not in answer:
        return _remote(answer["task"], OLDER)
    return None


def task_of(answer: Mapping[str, Any]) -> str | None:
    remote = remote_of(answer)
    return remote.id if remote is not None else None


def _remote(state: Mapping[str, Any], kind: str) -> RemoteTask | None:
    id = state.get("taskId")
    return RemoteTask(id, kind) if isinstance(id, str) and id else None


def interval_of(state: Mapping[str, Any]) -> float:
    """Seconds until the next look, as the server asks for it, within bounds."""
    asked = state.get("pollIntervalMs", state.get("pollInterval"))
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not asked >= 0:
        return USUAL
    return min(LATEST, max(SOONEST, asked / 1000))


def is_over(state: Mapping[str, Any]) -> bool:
    return state.get("status") in ("completed", "failed", "cancelled", "input_required")


def ending_of(state: Mapping[str, Any], tool: str) -> Report | None:
    """How it ended, where the state itself says so; None where the result has to be fetched."""
    status = state.get("status")
    if status == "cancelled":
        return Report(error=Failed(f"The server cancelled its task of {tool}.", "cancelled_by_server"))
    if status == "input_required":
        return Report(error=needs_input(tool))
    result, error = state.get("result"), state.get("error")
    if status == "completed" and isinstance(result, Mapping):
        return report_of(cast("Mapping[str, Any]", result))
    if status == "failed" and isinstance(error, Mapping):
        return report_of_error(error, tool)
    return None


def needs_input(tool: str) -> Failed:
    return Failed(
        f"{tool} asks for input, and nobody can be asked through Meantime yet.",
        "input_required",
        detail="Call the tool with everything that it needs.",
    )


def beginning(clock: Clock) -> str:
    """Now, for an owner that did not begin the call; short, because it is kept beside the server's own id."""
    boot = short_boot(SHORTEST)
    return f"{boot}.{clock.monotonic():.3f}" if boot else ""


def age_of(began: str, task: Task, clock: Clock) -> float:
    """Seconds that a call has been under way."""
    boot, _, at = began.partition(".")
    try:
        monotonic = float(at)
    except ValueError:
        monotonic = None
    return clocks.age(clock, boot, monotonic, task.run.started_at)
