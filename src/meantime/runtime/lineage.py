"""The starter of each task: the one rule of how deep work may start work, wherever it asks from."""

from __future__ import annotations

from typing import NamedTuple

from meantime.kernel.errors import Refused
from meantime.kernel.ids import check_id
from meantime.ports.runner import CURRENT
from meantime.ports.tasks import Options

from .record import Record


class Parent(NamedTuple):
    """The task whose work starts another."""

    id: str
    depth: int
    children: int  # how deep what it starts may go: 0 is nothing, -1 is any
    agent: str | None  # the nearest: itself, or one above it


async def parent_of(options: Options, record: Record) -> Parent | None:
    """The work that runs here, or the task for which another program says that it asks. Work that runs here
    cannot name another. A task that this ledger does not know is nobody's parent: it may be another's.
    """
    work = CURRENT.get(None)
    if work is not None:
        known = record.live.get(work.task_id)
        limits = [one for one in (work.children, known.children if known else -1) if one >= 0]
        depth, agent = getattr(work, "depth", 0), getattr(work, "agent", None)
        return Parent(work.task_id, depth, min(limits, default=-1), agent)
    if options.parent is None:
        return None
    id = check_id(options.parent, "parent")
    task = record.live.get(id) or record.calls.get(id) or await record.store.load(id)
    return None if task is None else Parent(task.id, task.depth, task.children, task.nearest_agent)


def allowed_below(parent: Parent | None, own: int) -> int:
    """How deep what a child of it starts may go, where `own` is what the child may do at most; or it may have
    no child."""
    if parent is None or parent.children < 0:
        return own
    if parent.children == 0:
        raise Refused(
            "This agent may not start tasks of its own.",
            code="no_children",
            hint="Do the work yourself; or allow it with depth=1 in the agent's settings.",
        )
    below = parent.children - 1
    return below if own < 0 else min(own, below)
