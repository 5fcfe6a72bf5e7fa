"""The columns that people look by. They repeat what the body says, for searching and counting."""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from typing import Any

import msgspec

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.stats import Heap, Statistics

_decode = msgspec.json.Decoder(Task).decode


Columns = tuple[str, str, str | None, float | None, str, str | None]


def columns(task: Task) -> Columns:
    """agent, words, session, duration, kind, parent."""
    work, run = task.work, task.run
    return task.agent_or_kind, task.title.casefold(), task.session, run.duration, work.kind, task.parent


def looked(body: bytes, place: int) -> str | float | None:
    """One column of a task that was written without them; None where the body is damaged."""
    return _columns_of(body)[place]


@lru_cache(maxsize=1)  # a row asks for its columns one after the other
def _columns_of(body: bytes) -> tuple[str | float | None, ...]:
    try:
        return columns(_decode(body))
    except msgspec.MsgspecError:
        return (None,) * 6


def teach(db: sqlite3.Connection) -> None:
    """Lets SQL fill the columns of older rows."""
    db.create_function("looked", 2, looked, deterministic=True)


def gather(rows: list[Any]) -> Statistics:
    heaps = (
        Heap(Status(status), bool(resumed), agent or "", count, timed, seconds or 0.0, longest, shortest)
        for status, resumed, agent, count, timed, seconds, longest, shortest in rows
    )
    return Statistics(tuple(heaps))
