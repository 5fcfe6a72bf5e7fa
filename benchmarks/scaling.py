"""How the cost of every operation grows: its expected class first, then the measured slope.

    make bench NAMES=scaling                  from 1,000 to 100,000
    make bench NAMES=scaling MOST=1000000     further: the history alone goes beyond 100,000
    make bench NAMES=scaling MOST=10000       a quick look

The slope is that of a line through log(size) and log(CPU time): 0 is constant, 1 is linear. An operation is
a defect if its slope is over that of its class by more than 0.2, unless REASONS says why it may.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from . import worlds
from .measure import folder, table, us
from .worlds import GROWN, Costs

OPERATIONS: tuple[str, ...] = (
    "start", "end", "turn", "ack", "list", "rows", "overview", "search", "reminder", "open", "close",
    "cancel-all",
)  # fmt: skip
CONSTANT, LOG, LINEAR = "constant", "log n", "linear"
SLOPES = {CONSTANT: 0.0, LOG: 0.1, LINEAR: 1.0}  # log n from 1,000 to 100,000 has the slope 0.11
SLACK = 0.2
FLOOR = 30e-6  # seconds: below it the clock and the event loop are measured, not the operation
LEAST, MOST, MOST_BUT_HISTORY = 1_000, 100_000, 100_000

_ANY: dict[str, str] = dict.fromkeys(OPERATIONS, LOG)
EXPECTED: dict[str, dict[str, str]] = {
    # Closing stops what runs. Opening finds what was left: functions that ran are over by then.
    "active": {**_ANY, "close": LINEAR},
    # Opening counts what is unread in every conversation.
    "conversations": {**_ANY, "close": LINEAR, "open": LINEAR},
    "batches": {**_ANY, "close": LINEAR},
    "queued": {"start": LOG, "list": LOG, "rows": LOG, "overview": LOG, "search": LINEAR, "reminder": LINEAR,
               "open": LINEAR, "close": LINEAR, "cancel-all": LINEAR},
    "readers": {**_ANY, "start": LINEAR, "end": LINEAR, "turn": LOG, "cancel-all": LINEAR, "close": LINEAR},
    "unread": dict(_ANY),
    "history": dict(_ANY),
    "output": {**_ANY, "end": LINEAR},
    "clients": {**_ANY, "close": LINEAR},
}  # fmt: skip
for _grown in ("active", "conversations", "batches", "unread", "history", "output"):
    EXPECTED[_grown]["search"] = LINEAR  # a text is looked for in every title
# What may be steeper than its class, and why.
CHECKED = "a file below 16 MB is checked whole; a bigger one only after a crash"
REASONS: dict[tuple[str, str], str] = {
    (grown, "open"): CHECKED for grown in ("active", "batches", "unread", "history")
}
WRITTEN_BACK = "writes the WAL back, which has a limit: random ids touch more pages of a bigger index"
REASONS["unread", "close"] = REASONS["history", "close"] = WRITTEN_BACK


def sizes(most: int) -> list[int]:
    found = [LEAST]
    while found[-1] * 10 <= most:
        found.append(found[-1] * 10)
    if found[-1] < most:
        found.append(most)
    return found


def slope(costs: Sequence[tuple[int, float]]) -> float:
    """Of the line of least squares through the logarithms."""
    points = [(math.log(size), math.log(max(cost, FLOOR))) for size, cost in costs]
    across = sum(x for x, _ in points) / len(points)
    up = sum(y for _, y in points) / len(points)
    width = sum((x - across) ** 2 for x, _ in points)
    return sum((x - across) * (y - up) for x, y in points) / width


async def measured(grown: str, most: int) -> dict[int, Costs]:
    """The costs of every operation, by size."""
    limit = most if grown == "history" else min(most, MOST_BUT_HISTORY)
    found: dict[int, Costs] = {}
    for size in sizes(limit):
        with folder() as path:
            found[size] = await worlds.measured(getattr(worlds, grown), path / "work.db", size)
    return found


def defects(grown: str, found: dict[int, Costs], slack: float = SLACK) -> dict[str, float]:
    """Operations whose slope is over that of their class, and that have no reason for it."""
    over: dict[str, float] = {}
    for name, expected in EXPECTED[grown].items():
        steep = slope([(size, costs[name]) for size, costs in found.items()])
        if steep > SLOPES[expected] + slack and (grown, name) not in REASONS:
            over[name] = steep
    return over


async def run() -> None:
    most = int(os.environ.get("MOST") or MOST)
    names = [grown.__name__ for grown in GROWN]
    rows = [[name, *(EXPECTED[name].get(one, "–") for one in OPERATIONS)] for name in names]
    table("Expected, before anything is measured", ["what grows", *OPERATIONS], rows)
    wrong: list[str] = []
    for name in names:
        found = await measured(name, most)
        over = defects(name, found)
        table(f"{name}: CPU time of one", ["", *(f"{size:,}" for size in found), "slope", "expected", ""],
              [_row(name, one, found, over) for one in EXPECTED[name]])  # fmt: skip
        wrong += [f"{name}/{one}" for one in over]
    print(f"\n{len(wrong)} defects: {', '.join(wrong) or 'none'}")


def _row(grown: str, name: str, found: dict[int, Costs], over: dict[str, float]) -> list[str]:
    steep = slope([(size, costs[name]) for size, costs in found.items()])
    said = "DEFECT" if name in over else ""
    if steep > SLOPES[EXPECTED[grown][name]] + SLACK:
        said = said or REASONS[grown, name]
    times = [us(costs[name]) for costs in found.values()]
    return [name, *times, f"{steep:.2f}", EXPECTED[grown][name], said]
