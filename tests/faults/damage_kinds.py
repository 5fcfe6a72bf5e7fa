"""Kinds of damage, and the files that they are done to."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .damage_world import World

PAGE = 4096
Damage = Callable[["Target", random.Random], None]


class Target(NamedTuple):
    path: Path
    early: bytes | None  # an older copy of it

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def _overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def _place(target: Target, rng: random.Random) -> int:
    """Mostly where something stands: a large part of a database is empty."""
    content = target.path.read_bytes()
    for _ in range(20):
        at = rng.randrange(max(1, len(content)))
        if content[at : at + 1] not in (b"\0", b""):
            break
    return at


def flip(target: Target, rng: random.Random) -> None:
    at = _place(target, rng)
    (byte,) = target.path.read_bytes()[at : at + 1] or b"\0"
    _overwrite(target.path, at, bytes([byte ^ 1 << rng.randrange(8)]))


def garbage(target: Target, rng: random.Random) -> None:
    at = _place(target, rng)
    _overwrite(target.path, at, rng.randbytes(min(rng.choice((2, 16, 512, PAGE)), max(1, target.size - at))))


def zeros(target: Target, rng: random.Random) -> None:
    """A sector or a page, as a disk loses it."""
    length = rng.choice((512, PAGE))
    at = _place(target, rng) // length * length
    _overwrite(target.path, at, bytes(max(1, min(length, target.size - at))))


def cut(target: Target, rng: random.Random) -> None:
    os.truncate(target.path, rng.choice((0, rng.randrange(max(1, target.size)))))


def deletion(target: Target, rng: random.Random) -> None:
    target.path.unlink()


def older_in_place(target: Target, rng: random.Random) -> None:
    """`cp` over it."""
    assert target.early is not None
    with target.path.open("r+b") as file:
        file.truncate(0)
        file.write(target.early)


def older_moved(target: Target, rng: random.Random) -> None:
    """`mv` over it."""
    assert target.early is not None
    new = target.path.with_name("older")
    new.write_bytes(target.early)
    new.chmod(0o600)
    os.replace(new, target.path)


def nothing(target: Target, rng: random.Random) -> None:
    """A ledger that is not damaged must be found so."""


KINDS: tuple[Damage, ...] = (flip, garbage, zeros, cut, deletion, older_in_place, older_moved)
# How often a place is chosen, and its files.
PLACES = {
    "database": (12, "ledger.db"),
    "WAL": (8, "ledger.db-wal"),
    "shm": (3, "ledger.db-shm"),
    "mark": (3, "ledger.db.mark"),
    "lock": (4, "ledger.db.lock"),
    "spill": (3, "ledger.db.files/*.txt"),
    "state": (3, "ledger.db.commands/*.state"),
    "output": (3, "ledger.db.commands/*.out"),
    "token": (1, "ledger.db.http/token"),
}


def target_of(world: World, place: str, kind: Damage, rng: random.Random) -> Target | None:
    """None where there is no such file in this world."""
    paths = sorted(world.folder.glob(PLACES[place][1]))
    if not paths:
        return None
    path = rng.choice(paths)
    return Target(path, _early(world, path, paths, rng) if kind in (older_in_place, older_moved) else None)


def _early(world: World, path: Path, alike: list[Path], rng: random.Random) -> bytes:
    """An older copy; of a file that is written once, the content of another one."""
    found = world.early.get(path.name)
    return found if found is not None else rng.choice(alike).read_bytes()
