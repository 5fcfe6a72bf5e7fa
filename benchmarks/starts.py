"""The same durable start through each way in: embedded, over the link, and over HTTP.

The work is due in an hour, so nothing runs meanwhile: what is timed is the hand-off alone. All take turns.
"""

from __future__ import annotations

import json
import time

from meantime import Meantime, Shell, Thread

from .loading import Line
from .measure import RATIOS, TABLES, UNLIMITED, Ratio, folder, p50, table, us, verdict
from .serving import daemon

ROUNDS = 500
LATER = 3_600.0  # seconds
EMBEDDED, LINK, HTTP = "embedded", "over the link", "over HTTP"
TARGETS = {LINK: (EMBEDDED, 1.3), HTTP: (LINK, 2.0)}
BODY = json.dumps({"command": ["true"], "thread": "http", "delay": LATER}).encode()


async def run() -> None:
    times: dict[str, list[float]] = {EMBEDDED: [], LINK: [], HTTP: []}
    with daemon() as ours, folder() as place:
        line = Line(str(ours.home.http_socket))
        async with (
            Meantime.open(place / "work.db", settings=UNLIMITED) as embedded,
            Meantime.connect(ours.home.link_socket, start=False) as linked,
        ):
            for _ in range(ROUNDS):
                times[EMBEDDED].append(await _start(embedded.thread("embedded")))
                times[LINK].append(await _start(linked.thread("link")))
                began = time.perf_counter()
                line.post("/v1/tasks", BODY)
                times[HTTP].append(time.perf_counter() - began)
        line.close()
    TABLES["starts"] = [{"name": name, "us": p50(taken) * 1e6} for name, taken in times.items()]
    table("A durable start (p50)", ["", "time", "beside", "target"], [_row(name, times) for name in times])


async def _start(thread: Thread) -> float:
    began = time.perf_counter()
    await thread.start(Shell(["true"]), delay=LATER)
    return time.perf_counter() - began


def _row(name: str, times: dict[str, list[float]]) -> list[str]:
    if name not in TARGETS:
        return [name, us(p50(times[name])), "", ""]
    beside, target = TARGETS[name]
    found = p50(times[name]) / p50(times[beside])
    RATIOS[f"starts/{name}, of {beside}"] = Ratio(found)
    return [name, us(p50(times[name])), f"{found:.2f}× {beside}", verdict(found, target)]
