"""How much may run at once, and who is next. Slots are counted here and nowhere else."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Annotated, NamedTuple

from msgspec import Struct, field

from .argument_checks import check_map, shown
from .constraints import DEPTH, LIMIT, check_fields, one_of
from .errors import LimitReached
from .model import Task, Work
from .pool_slots import HERE, Need, PoolTable, need_for

NO_LIMIT = -1
ON_LIMIT = one_of("queue", "reject")
FIRST_PLACES = 1_000  # of a queue, that a list shows
WATCH, WATCHES = "watch", 1_000  # the kind of work that only waits, and how many of it a thread may have


class Lane(NamedTuple):
    """Tasks that are first in, first out: of one thread, one kind of work and, at workers, one need."""

    thread: str
    kind: str
    need: Need = HERE

    @property
    def place(self) -> str:
        return self.need.place

    @property
    def is_counted(self) -> bool:
        """Whether it counts against `total`. A watch does not: it would keep work from running."""
        return self.kind != WATCH


def lane_for(thread: str, work: Work, place: str) -> Lane:
    return Lane(thread, work.kind, need_for(work, place)) if place else Lane(thread, work.kind)


def lane_of(task: Task) -> Lane:
    return lane_for(task.thread, task.work, task.place)


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
    reminders: Annotated[int, LIMIT] = 100_000  # that are still to come, in all,
    reminders_per_thread: Annotated[int, LIMIT] = 1_000  # and of one thread

    def for_kind(self, kind: str) -> int:
        """The limit of one thread for this kind of work; -1 is no limit."""
        return self.per_kind.get(kind, WATCHES if kind == WATCH else self.per_thread)


class Retention(Struct, frozen=True):
    """The history that stays in the listings and in the ledger, and for how long. An untold task always
    stays."""

    hot: int = 20  # ended tasks that a thread lists; older ones still answer get
    history_seconds: float = 30 * 86_400.0  # how long told endings stay in the ledger
    history_tasks: int = 200_000  # and how many
    journal_events: int = 100_000
    told_events: int = 1_000  # notices of one task before its end that stay in the ledger once they are told
    unclaimed_seconds: float = 7 * 86_400.0  # after this, an unclaimed thread's notices are parked


class Slots:
    """The running and the waiting tasks. First in first out within a lane, round robin between lanes.

    `total` is for the work of this machine. Work of a pool counts against the pool and `per_thread`; its
    lanes are held apart by what they need of a worker, so that a need that nobody can meet holds up no other.

    capacity: the slots of the workers that can perform a need.
    """

    def __init__(self, limits: Limits, capacity: Callable[[Need], int] = lambda need: 0) -> None:
        self.limits = check_fields(limits)
        self.running = 0
        self.waiting = 0
        self.pools = PoolTable(capacity)
        self._running: dict[tuple[str, str], int] = {}  # by thread and kind, wherever it runs
        self._queues: OrderedDict[Need, OrderedDict[Lane, OrderedDict[str, None]]] = OrderedDict()

    def fits(self, lane: Lane) -> bool:
        own = self.limits.for_kind(lane.kind)
        has_room = not lane.is_counted or self._has_room(lane.need)
        return has_room and (own == NO_LIMIT or self.running_in(lane) < own)

    def _has_room(self, need: Need) -> bool:
        if need.place:
            return self.pools.fits(need)
        return self.limits.total == NO_LIMIT or self.running < self.limits.total

    def running_in(self, lane: Lane) -> int:
        return self._running.get(lane[:2], 0)

    def take(self, lane: Lane) -> None:
        """To a pool it is offered: `claim` follows, when a worker has it."""
        if lane.place:
            self.pools.count(lane.need, offered=1)
        else:
            self.running += lane.is_counted
        self._running[lane[:2]] = self._running.get(lane[:2], 0) + 1

    def claim(self, lane: Lane) -> None:
        self.pools.count(lane.need, offered=-1, claimed=1)

    def give_back(self, lane: Lane, *, claimed: bool = True) -> None:
        """`claimed`: a worker had it; otherwise it was only offered."""
        left = self._running[lane[:2]] - 1
        if lane.place:
            self.pools.count(lane.need, offered=-(not claimed), claimed=-claimed)
        else:
            self.running -= lane.is_counted
        if left:
            self._running[lane[:2]] = left
        else:
            del self._running[lane[:2]]

    def _queue(self, lane: Lane) -> OrderedDict[str, None] | None:
        return self._queues.get(lane.need, _NO_LANES).get(lane)

    def is_open(self, lane: Lane) -> bool:
        """A newcomer may start only where nobody of its own lane waits before it."""
        return self._queue(lane) is None and self.fits(lane)

    def wait(self, lane: Lane, task: str, *, first: bool = False) -> None:
        """`first`: it was next already, and was offered in vain."""
        self.waiting += 1
        queue = self._queues.setdefault(lane.need, OrderedDict()).setdefault(lane, OrderedDict())
        queue[task] = None
        if first:
            queue.move_to_end(task, last=False)

    def waiting_for(self, need: Need) -> Collection[Collection[str]]:
        """The queues of those who wait for a worker that can perform this."""
        return self._queues.get(need, _NO_LANES).values()

    def forget(self, lane: Lane, task: str) -> bool:
        """A queued task that is cancelled leaves its place."""
        queue = self._queue(lane)
        if queue is None or task not in queue:
            return False
        del queue[task]
        self.waiting -= 1
        if not queue:
            self._drop(lane)
        return True

    def _drop(self, lane: Lane) -> None:
        del self._queues[lane.need][lane]
        if not self._queues[lane.need]:
            del self._queues[lane.need]

    def position(self, lane: Lane, task: str) -> int | None:
        """1 is next of its lane; None is not queued."""
        queue = self._queue(lane)
        return next(at for at, one in enumerate(queue, 1) if one == task) if queue and task in queue else None

    def places(self, lanes: Iterable[Lane]) -> dict[str, int]:
        """The first places of these queues, by task; a task far behind has none."""
        return {
            task: at
            for lane in set(lanes)
            for at, task in enumerate(islice(self._queue(lane) or (), FIRST_PLACES), 1)
        }

    def full_limit(self, lane: Lane) -> tuple[int, int, str]:
        """The limit that a task of this lane waits for: how much runs, of how much, and of which kind of
        work, empty for all of it. Zeros if nothing is full."""
        own, total = self.limits.for_kind(lane.kind), self.limits.total
        if own != NO_LIMIT and self.running_in(lane) >= own:
            return self.running_in(lane), own, lane.kind
        if lane.place:
            pool = self.pools[lane.need]
            return (0, 0, "") if self.pools.fits(lane.need) else (pool.claimed, pool.slots, lane.place)
        if total != NO_LIMIT and self.running >= total:
            return self.running, total, ""
        return 0, 0, ""

    def admit(self) -> Iterator[str]:
        """Takes a slot for each task that may start now, and names it. One of each need after the other, so
        that no function takes all the slots of a pool."""
        needs = list(self._queues)
        while needs:
            more: list[Need] = []
            for need in needs:
                lane = self._next(need)
                if lane is not None:
                    more.append(need)
                    yield self._take_next(lane)
            needs = more

    def _take_next(self, lane: Lane) -> str:
        lanes = self._queues[lane.need]
        task, _ = lanes[lane].popitem(last=False)
        self.waiting -= 1
        if lanes[lane]:
            lanes.move_to_end(lane)
            self._queues.move_to_end(lane.need)
        else:
            self._drop(lane)
        self.take(lane)
        return task

    def _next(self, need: Need) -> Lane | None:
        lanes = self._queues.get(need)
        if lanes is None or not self._has_room(need):
            return None
        return next((lane for lane in lanes if self.fits(lane)), None)

    def refusal(self, lane: Lane) -> LimitReached:
        running, limit, of = self.full_limit(lane)
        if of and of == lane.kind:
            text = f"{running} of at most {limit} {of} tasks are running in this thread."
        elif of:
            text = f"{running} of the {limit} slots of {of} are in use."
        elif limit:
            text = f"{running} of at most {limit} tasks are running in all."
        else:
            running, limit = self.running_in(lane), self.limits.for_kind(lane.kind)
            text = f"{len(self._queue(lane) or ())} {lane.kind} tasks of this thread wait already."
        return LimitReached(text, running=running, limit=limit)


_NO_LANES: OrderedDict[Lane, OrderedDict[str, None]] = OrderedDict()
