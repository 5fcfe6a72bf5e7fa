"""Whether a task is one that a query asks for, and what many of them look like."""

from __future__ import annotations

from collections.abc import Iterable

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.stats import Heap, Statistics
from meantime.ports.store import Query


def fits(query: Query, task: Task) -> bool:
    return (
        (query.thread is None or task.thread == query.thread)
        and (query.statuses is None or task.status in query.statuses)
        and (query.batch is None or task.batch == query.batch)
        and (query.hidden or not task.hidden)
        and (query.resumed is None or task.status is not Status.RUNNING or task.resumed == query.resumed)
        and (query.agent is None or task.agent_or_kind == query.agent)
        and (query.session is None or task.session == query.session)
        and (not query.search or query.search.casefold() in task.title.casefold())
    )


def statistics(tasks: Iterable[Task]) -> Statistics:
    heaps: dict[tuple[Status, bool, str], list[Task]] = {}
    for task in tasks:
        heaps.setdefault((task.status, task.resumed, task.agent_or_kind), []).append(task)
    return Statistics(tuple(_heap(*alike, found) for alike, found in heaps.items()))


def _heap(status: Status, resumed: bool, agent: str, found: list[Task]) -> Heap:
    took = [task.run.duration for task in found if task.run.duration is not None]
    longest, shortest = max(took, default=None), min(took, default=None)
    return Heap(status, resumed, agent, len(found), len(took), sum(took), longest, shortest)
