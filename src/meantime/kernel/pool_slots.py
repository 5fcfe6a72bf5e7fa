"""Pools of workers: what a task needs of a worker, and how much of it is offered and claimed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .model import Task, Work

POOL = "pool:"  # a place that names a pool of workers begins with it
TWICE = 2  # offers for each free slot: no worker waits for us, and little leaves the fair queue too early


class Need(NamedTuple):
    """The worker that a task needs: it is of the place, and knows the kind of work and the function.
    Empty fields: work of the owner's machine."""

    place: str = ""
    kind: str = ""
    name: str = ""  # of a function; a command needs none


HERE = Need()


def need_for(work: Work, place: str) -> Need:
    """For work of a pool."""
    return Need(place, work.kind, work.name if work.kind == "call" else "")


def need_of(task: Task) -> Need:
    return need_for(task.work, task.place)


def split_place(place: str) -> tuple[str, dict[str, str]]:
    """The name of the pool, and the labels that its worker must have."""
    pool, _, labels = place.removeprefix(POOL).partition("?")
    pairs = (label.partition("=") for label in labels.split("&") if label)
    return pool, {name: value for name, _, value in pairs}


class PoolSlots:
    """The slots of some workers, what was offered to them, and what they have claimed."""

    __slots__ = ("claimed", "missing", "offered", "slots")

    def __init__(self, slots: int = 0) -> None:
        self.slots = slots
        self.offered = 0
        self.claimed = 0
        self.missing = 0.0  # seconds for which there has been no slot

    @property
    def fits(self) -> bool:
        return self.offered < TWICE * max(0, self.slots - self.claimed)

    @property
    def is_unused(self) -> bool:
        return not self.offered and not self.claimed


class PoolTable:
    """The slots of each pool as a whole, and of its workers that can perform one need.

    Both limit what is offered. Without the second, offers of a function that few workers have would fill the
    pool's queue, and the others would wait beside it.
    """

    def __init__(self, capacity: Callable[[Need], int]) -> None:
        self._capacity = capacity
        self._slots: dict[Need, PoolSlots] = {}

    def __getitem__(self, need: Need) -> PoolSlots:
        found = self._slots.get(need)
        if found is None:
            found = self._slots[need] = PoolSlots(self._capacity(need))
        return found

    def unmet(self) -> list[Need]:
        """The needs that nobody can perform."""
        return [need for need, slots in self._slots.items() if need.kind and not slots.slots]

    def fits(self, need: Need) -> bool:
        return self[need].fits and self[_whole(need)].fits

    def count(self, need: Need, *, offered: int = 0, claimed: int = 0) -> None:
        for each in (self[need], self[_whole(need)]):
            each.offered += offered
            each.claimed += claimed

    def refresh(self) -> None:
        """Workers came or went."""
        for need, slots in self._slots.items():
            slots.slots = self._capacity(need)

    def pass_time(self, seconds: float) -> list[Need]:
        """The needs that nobody can meet, each with `missing` counted on."""
        for slots in self._slots.values():
            slots.missing = 0.0 if slots.slots else slots.missing + seconds
        return self.unmet()

    def forget_unused(self, waiting: Callable[[Need], object]) -> None:
        """Keeps no need that nothing waits for: places and names are given by callers."""
        used = {_whole(need) for need in self._slots if waiting(need) or not self._slots[need].is_unused}
        for need in [need for need, slots in self._slots.items() if slots.is_unused]:
            if need not in used and not waiting(need):
                del self._slots[need]


def _whole(need: Need) -> Need:
    """Any work of the pool, whatever labels it asks for."""
    return Need(need.place.partition("?")[0])
