"""Many tasks in numbers, as seed 001 asks for them: of everything, and of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from meantime.kernel.model import Task
from meantime.kernel.stats import Statistics

from .server_schemas import DurationStats, Stats, StatusCounts
from .task_encoding import milliseconds, wire_task, word, word_of, words
from .task_schemas import TaskGroup


def wire_stats(found: Statistics, counts: Mapping[str, int]) -> Stats:
    """`counts` are the ledger's own: what is not told yet is never out of sight."""
    by_status = dict.fromkeys(words(), 0)
    for heap in found.heaps:
        by_status[word(heap.status, heap.resumed)] += heap.tasks
    return Stats(
        total_tasks=found.total,
        active_tasks=by_status["running"] + by_status["resumed"],
        by_status=StatusCounts(**by_status),
        by_agent=dict(sorted(found.by_agent.items())),
        duration=DurationStats(
            avg=milliseconds(found.average) or 0,
            max=milliseconds(found.longest) or 0,
            min=milliseconds(found.shortest) or 0,
        ),
        degraded=bool(counts.get("degraded")),
        resting_threads=counts.get("threads.resting", 0),
        notices={
            name.removeprefix("notices."): count
            for name, count in sorted(counts.items())
            if name.startswith("notices.")
        },
        workers={
            name.removeprefix("workers."): count
            for name, count in sorted(counts.items())
            if name.startswith("workers.")
        },
    )


def wire_group(id: str, tasks: Sequence[Task], now: float) -> TaskGroup:
    """A resumed task counts as running. `duration` is from the first start to the last ending, or to now
    while something runs."""
    words = [word_of(task) for task in tasks]
    completed, total = words.count("completed"), len(tasks)
    return TaskGroup(
        batch_id=id,
        completed=completed,
        running=words.count("running") + words.count("resumed"),
        error=words.count("error"),
        cancelled=words.count("cancelled"),
        total=total,
        completion_rate=round(completed / total, 4) if total else 0,
        total_tool_calls=sum(task.progress.calls for task in tasks if task.progress),
        duration=milliseconds(_span(tasks, now)) or 0,
        tasks=[wire_task(task) for task in tasks],
    )


def _span(tasks: Sequence[Task], now: float) -> float:
    begins = [task.run.started_at or task.run.queued_at for task in tasks]
    ends = [now if task.run.ended_at is None else task.run.ended_at for task in tasks]
    return max(0.0, max(ends, default=0.0) - min(begins, default=0.0))
