"""The abilities of workers: each lists its own in `alive`, and the owner offers only what one can perform."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from meantime.kernel.payloads import one_line
from meantime.kernel.pool_slots import Need, split_place

MOST_NAMES = 500  # functions that a worker lists; of more it lists the modules
MOST_BYTES = 32_000  # of these names
NAMED = 3  # workers that a sentence names
ANY = "*"


def advertised(functions: Collection[str]) -> tuple[str, ...]:
    """The names for `alive`. Too many are replaced by their modules, and too many modules by one wildcard."""
    modules = sorted({f"{name.partition(':')[0]}:{ANY}" for name in functions})
    for names in (sorted(functions), modules):
        if len(names) <= MOST_NAMES and sum(map(len, names)) <= MOST_BYTES:
            return tuple(names)
    return (ANY,)


def has_function(functions: Collection[str], name: str) -> bool:
    """`functions`: as they were advertised. A worker that lists none may be an older one: it may have it."""
    if not functions or name in functions:
        return True
    return f"{name.partition(':')[0]}:{ANY}" in functions or ANY in functions


class Capability(Struct, frozen=True):
    """One worker, by its last messages."""

    name: str
    pool: str
    slots: int
    labels: dict[str, str]
    kinds: tuple[str, ...]
    functions: frozenset[str]  # as it last listed them
    draining: bool
    opens_seals: bool = True  # False: it is of an earlier version

    def lacks(self, need: Need) -> str:
        """The missing ability, in words; empty if it can perform this. A need without a kind is any work."""
        pool, labels = split_place(need.place)
        if self.pool != pool:
            return f"is of pool {self.pool}"
        for label, value in labels.items():
            if self.labels.get(label) != value:
                return f"has the label {label}={value}"
        if need.kind and self.kinds and need.kind not in self.kinds:
            return "performs commands" if need.kind == "shell" else "performs functions"
        if need.name and not has_function(self.functions, need.name):
            return f"has the function {need.name}"
        if not self.opens_seals:
            return "opens sealed work: update Meantime there"
        return ""


def missing(workers: Sequence[Capability], need: Need) -> str:
    """Why nobody of these can perform the need: what those miss who come closest."""
    pool, _ = split_place(need.place)
    there = [worker for worker in workers if worker.pool == pool]
    if not there:
        return f"there is no worker of pool {pool}"
    lacking = [worker.lacks(need) for worker in there]
    if "" in lacking:
        return f"the workers of pool {pool} that could perform it drain, or send nothing"
    return one_line(f"no worker of pool {pool} {_nearest(lacking)} ({_names(there)} cannot)", 200)


def _nearest(lacking: Iterable[str]) -> str:
    """A worker that misses only the seal comes closest; one that misses the function has the labels."""
    order = ("opens sealed work", "has the function", "performs", "has the label")
    return min(lacking, key=lambda one: next(at for at, begin in enumerate(order) if one.startswith(begin)))


def _names(workers: Sequence[Capability]) -> str:
    names = [worker.name for worker in workers[:NAMED]]
    more = len(workers) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
