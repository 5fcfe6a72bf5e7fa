"""The hosts that are told of a thread's endings: their delivery class, and whether they are connected.

A host is known while it is attached, speaks MCP, runs hooks or waits for a wake. Nothing of it is recorded:
after a restart it is known again when it comes back.
"""

from __future__ import annotations

from meantime.kernel.durations import iso
from meantime.ports.task_details import Attendance

from .dependencies import Dependencies
from .notice_schemas import OpenTurnAnswer, ThreadHost


def thread_hosts(deps: Dependencies, thread: str, attendance: Attendance) -> list[ThreadHost]:
    """Attached hosts and MCP clients first; then hooks; then whoever else waits or has a turn open."""
    served = (*deps.owner.about().hosts, *deps.mcp_hosts())
    found = [
        ThreadHost(name=host.kind, delivery=host.grade, connected=True, since=None, last_turn=None)
        for host in served
        if host.thread == thread
    ]
    hook = deps.hooks.hosts.of(thread)
    if hook is not None:
        found.append(
            ThreadHost(
                name=hook.name,
                delivery=hook.grade,
                connected=hook.waiting > 0 or attendance.turn is not None,
                since=iso(hook.since),
                last_turn=iso(hook.seen),
            )
        )
    if not found and (attendance.waiting or attendance.turn):
        opened = iso(attendance.opened_at)
        found.append(ThreadHost(name="turns", delivery=None, connected=True, since=opened, last_turn=opened))
    return found


def wire_turn(attendance: Attendance) -> OpenTurnAnswer | None:
    if attendance.turn is None:
        return None
    return OpenTurnAnswer(id=attendance.turn, opened_at=iso(attendance.opened_at), held=attendance.held)
