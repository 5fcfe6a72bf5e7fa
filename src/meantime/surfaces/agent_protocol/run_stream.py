"""A run as server-sent events, in the modes that clients ask for. The id of an event is the place behind the
lines that it tells of, so that a client that was cut off reads on from there, after a restart too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from meantime.kernel.errors import InvalidInput
from meantime.surfaces.agent_runs.numbered_run import NumberedRun
from meantime.surfaces.agent_runs.run_follower import RunStep
from meantime.surfaces.http.event_encoding import frame
from meantime.surfaces.http.responses import encode

from .run_encoding import AGENT_NODE, Wire, wire_message

SSE = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
WRITTEN = frozenset({"values", "updates", "messages", "messages-tuple"})
# Modes that a graph would have something to say in, and an agent of any kind does not.
SILENT = frozenset({"events", "debug", "custom", "tasks", "checkpoints", "tools", "lifecycle"})


def modes_of(asked: str | Iterable[str] | None) -> frozenset[str]:
    """An empty mode is none: the SDK's `join_stream` asks for it if its caller names none."""
    modes = frozenset([asked] if isinstance(asked, str) else asked or ()) - {""} or frozenset({"values"})
    if strange := modes - WRITTEN - SILENT:
        known = ", ".join(sorted(WRITTEN))
        raise InvalidInput(f"{min(strange)[:40]!r} is not a stream_mode.", hint=f"Use one of: {known}.")
    return modes


class EventWriter:
    def __init__(self, run: NumberedRun, modes: frozenset[str]) -> None:
        self._run = run
        self._modes = modes

    def begin(self) -> bytes:
        about = {"run_id": self._run.id, "thread_id": self._run.thread, "attempt": 1}
        return frame("metadata", encode(about))

    def lines(self, step: RunStep) -> bytes:
        """The new messages of a step, in the modes that tell of messages; empty if there are none."""
        behind = [*(one.place for one in step.lines[1:]), step.cursor]
        told = [(wire_message(step.run.task, one), at) for one, at in zip(step.lines, behind, strict=False)]
        return b"".join([self._message(message, at) for message, at in told if message is not None])

    def _message(self, message: Wire, cursor: int) -> bytes:
        found: list[bytes] = []
        about: dict[str, Any] = {"langgraph_node": AGENT_NODE, "run_id": self._run.id}
        if "updates" in self._modes:
            update = {AGENT_NODE: {"messages": [message]}}
            found.append(frame("updates", encode(update), cursor))
        if "messages-tuple" in self._modes:
            found.append(frame("messages", encode([message, about]), cursor))
        if "messages" in self._modes:
            found.append(frame("messages/complete", encode([message]), cursor))
        return b"".join(found)

    def values(self, values: Wire, cursor: int) -> bytes:
        return frame("values", encode(values), cursor)

    def end(self, run: NumberedRun, values: Wire) -> bytes:
        """The last values, or the error; then the end, so that nobody takes it for a cut."""
        error = values.pop("__error__", None)
        found = frame("values", encode(values)) if "values" in self._modes else b""
        if error is None and "values" not in self._modes and run.waits:
            found += frame("updates", encode({"__interrupt__": values["__interrupt__"]}))
        if error is not None:
            return found + frame("error", encode(error))
        return found + frame("end", b"null")
