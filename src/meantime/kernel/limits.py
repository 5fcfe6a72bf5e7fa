"""How much may run at once, and who is next. Slots are counted here and nowhere else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

from msgspec import Struct, field

from .argument_checks import check_map, shown
from .constraints import DEPTH, LIMIT, check_fields, one_of
from .errors import LimitReached

NO_LIMIT = -1
ON_LIMIT = one_of("queue", "reject")
FIRST_PLACES = 1_000  # of a queue, that a list shows
Lane = tuple[str, str]  # a thread and a kind of work


class PluginDefaults(Struct, frozen=True):
    """Limits for the tools of plugins, if their registry is given no others: seed 003's fields."""

    max_concurrent_tasks: int = 10
    default_timeout_seconds: float = 300.0
    completed_task_retention_seconds: float = 3600.0
    background_threshold_seconds: float = 10.0


def check_per_kind(value: object, name: str) -> dict[str, int]:
    return {kind: LIMIT(most, f"{name}[{shown(kind)}]") for kind, most in check_map(value, name).items()}


class Limits(Struct, frozen=True):
    """-1 is no limit. `per_thread` counts each kind of work by itself; `per_kind` overrides it."""

    per_thread: Annotated[int, LIMIT] = 10
    total: Annotated[int, LIMIT] = 50
    per_kind: Annotated[dict[str, int], check_per_kind] = field(default_factory=lambda: {"agent": 5})
    queued: Annotated[int, LIMIT] = 100_000  # how many may wait for a slot, in all
    on_limit: Annotated[str, ON_LIMIT] = "queue"  # or "reject"
    depth: Annotated[int, DEPTH] = NO_LIMIT  # how deep work may start work: 0 is not at all

    def for_kind(self, kind: str) -> int:
        """The limit of one thread for this kind of work; -1 is no limit."""
        return self.per_kind.get(kind, self.per_thread)


class Retention(Struct, frozen=True):
    """The history that stays in the listings and in the ledger, and for how long. An untold task always
    stays."""

    hot: int = 20  # ended tasks that a thread lists; older ones still answer get
    history_seconds: float = 30 * 86_400.0  # how long told endings stay in the ledger
    history_tasks: int = 200_000  # and how many
    journal_events: int = 100_000
    unclaimed_seconds: float = 7 * 86_400.0  # after this, an unclaimed thread's notices are parked


class Slots:
    """The running and the waiting tasks. First in first out within a lane, round robin between lanes."""

    def __init__(self, limits: Limits) -> None:
        self.limits = check_fields(limits)
        self.running = 0
        self.waiting = 0
        self._running: dict[Lane, int] = {}
        self._queues: OrderedDict[Lane, OrderedDict[str, None]] = OrderedDict()

    def fits(self, lane: Lane) -> bool:
        total, own = self.limits.total, self.limits.for_kind(lane[1])
        if total != NO_LIMIT and self.running >= total:
            return False
        return own == NO_LIMIT or self._running.get(lane, 0) < own

    def running_in(self, lane: Lane) -> int:
        return self._running.get(lane, 0)

    def take(self, lane: Lane) -> None:
        self.running += 1
        self._running[lane] = self._running.get(lane, 0) + 1

    def give_back(self, lane: Lane) -> None:
        left = self._running[lane] - 1
        self.running -= 1
        if left:
            self._running[lane] = left
        else:
            del self._running[lane]

    def is_open(self, lane: Lane) -> bool:
        """A newcomer may start only where nobody of its own lane waits before it."""
        return lane not in self._queues and self.fits(lane)

    def wait(self, lane: Lane, task: str) -> None:
        self.waiting += 1
        self._queues.setdefault(lane, OrderedDict())[task] = None

    def forget(self, lane: Lane, task: str) -> bool:
        """A queued task that is cancelled leaves its place."""
        queue = self._queues.get(lane)
        if queue is None or task not in queue:
            return False
        del queue[task]
        self.waiting -= 1
        if not queue:
            del self._queues[lane]
        return True

    def position(self, lane: Lane, task: str) -> int | None:
        """1 is next of its lane; None is not queued."""
        queue = self._queues.get(lane)
        return next(at for at, one in enumerate(queue, 1) if one == task) if queue and task in queue else None

    def places(self, lanes: Iterable[Lane]) -> dict[str, int]:
        """The first places of these queues, by task; a task far behind has none."""
        return {
            task: at
            for lane in set(lanes)
            for at, task in enumerate(islice(self._queues.get(lane, ()), FIRST_PLACES), 1)
        }

    def full_limit(self, lane: Lane) -> tuple[int, int, str]:
        """The limit that a task of this lane waits for: how much runs, of how much, and of which kind of
        work, empty for all of it. Zeros if nothing is full."""
        own, total = self.limits.for_kind(lane[1]), self.limits.total
        if own != NO_LIMIT and self.running_in(lane) >= own:
            return self.running_in(lane), own, lane[1]
        if total != NO_LIMIT and self.running >= total:
            return self.running, total, ""
        return 0, 0, ""

    def admit(self) -> Iterator[str]:
        """Takes a slot for each task that may start now, and names it."""
        while (lane := self._next()) is not None:
            queue = self._queues[lane]
            task, _ = queue.popitem(last=False)
            self.waiting -= 1
            if queue:
                self._queues.move_to_end(lane)
            else:
                del self._queues[lane]
            self.take(lane)
            yield task

    def _next(self) -> Lane | None:
        if self.limits.total != NO_LIMIT and self.running >= self.limits.total:
            return None
        return next((lane for lane in self._queues if self.fits(lane)), None)

    def refusal(self, lane: Lane) -> LimitReached:
        own, total = self.limits.for_kind(lane[1]), self.limits.total
        if own != NO_LIMIT and self.running_in(lane) >= own:
            running, limit = self.running_in(lane), own
            text = f"{running} of at most {own} {lane[1]} tasks are running in this thread."
        elif total != NO_LIMIT and self.running >= total:
            running, limit = self.running, total
            text = f"{running} of at most {total} tasks are running in all."
        else:
            running, limit = self.running_in(lane), own
            text = f"{len(self._queues.get(lane, ()))} {lane[1]} tasks of this thread wait already."
        return LimitReached(text, running=running, limit=limit)
