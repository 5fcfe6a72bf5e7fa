"""The page in a real browser, beside bare pages of the same server: every ratio in one run.

    make bench NAMES=dashboard                 a ledger of 1,000,000 tasks, and 20 minutes for the heap
    make bench NAMES=dashboard MINUTES=5       a shorter look at the heap
    make bench NAMES=dashboard MOST=100000     a smaller ledger

Costs are CPU time of the main thread, which does not depend on what else the machine does. Both pages of a
pair are measured in turn, and the median counts. `dashboard_feed` has the server's side.
"""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import Awaitable, Callable, Sequence

from playwright.async_api import Browser

from meantime import Meantime
from meantime.surfaces.dashboard.assets import Assets

from .. import dashboard_feed
from ..history import fill
from ..measure import UNLIMITED, folder, p50, table, verdict
from . import first_rows, frames, log_lines
from .browser import Cost, Tab, chromium, server
from .first_rows import Shown

ROUNDS = 5
OPENINGS = 9  # of each page
SECONDS = 4.0  # of one look at a page
FEW, MOST = 1_000, 1_000_000
MINUTES = 20.0
WARM = 60.0  # seconds before the heap is looked at for the first time
HEAP = 1.1  # the end beside the beginning
SIZE = 80_000  # bytes of the files that opening the page loads


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(*map(p50, zip(*costs, strict=True)))


def compared(title: str, ours: Sequence[Cost], bare: Sequence[Cost], target: float) -> None:
    own, base = median(ours), median(bare)
    rows = [
        [name, ms(one.cpu), ms(one.script), ms(one.layout)] for name, one in (("ours", own), ("bare", base))
    ]
    table(title, ["", "CPU", "script", "style, layout"], rows)
    print(f"  {own.cpu / base.cpu:.2f}×, {verdict(own.cpu / base.cpu, target)}")


async def in_turn(
    ours: Tab, bare: Tab, look: Callable[[Tab], Awaitable[Cost]]
) -> tuple[list[Cost], list[Cost]]:
    own, base = list[Cost](), list[Cost]()
    for _ in range(ROUNDS):
        own.append(await look(ours))
        base.append(await look(bare))
    return own, base


async def list_and_heap(browser: Browser) -> None:
    with folder() as place:
        async with Meantime.open(place / "work.db", settings=UNLIMITED) as mt, server(mt, place) as door:
            stream = frames.Stream()
            await stream.fill(mt)
            ours, bare = await frames.both(browser, door, stream)
            async with stream.flowing():
                for scroll, what in ((False, "a second"), (True, "a frame, while it is scrolled")):
                    found = await in_turn(
                        ours, bare, lambda one, scroll=scroll: frames.measured(one, SECONDS, scroll=scroll)
                    )
                    title = f"A list of {frames.TASKS:,} tasks with {frames.UPDATES} updates a second: {what}"
                    compared(title, *found, 1.5)
                await bare.close()
                await heap(ours)
            await ours.close()


async def heap(one: Tab) -> None:
    """Flat is what the same stream leaves as it was: rows are replaced, and none is added."""
    minutes = float(os.environ.get("MINUTES") or MINUTES)
    await asyncio.sleep(WARM)
    rows: list[list[str]] = []
    first = latest = await one.heap()
    steps = max(5, round(minutes / 2))
    for step in range(steps + 1):
        latest = await one.heap()
        found = await one.metrics()
        rows.append([f"{step * minutes / steps:.1f}", f"{latest / 1e6:.2f} MB", f"{found['Nodes']:.0f}"])
        if step < steps:
            await asyncio.sleep(60 * minutes / steps)
    table("The heap after a collection, while updates come", ["minutes", "heap", "DOM nodes"], rows)
    print(f"  {latest / first:.3f}× after {minutes:g} minutes, {verdict(latest / first, HEAP)}")


async def log(browser: Browser) -> None:
    with folder() as place:
        async with Meantime.open(place / "work.db", settings=UNLIMITED) as mt, server(mt, place) as door:
            ours, bare = await log_lines.opened(browser, mt, door)
            found = await in_turn(ours, bare, lambda one: log_lines.measured(one, SECONDS))
            compared(f"A log of {log_lines.LINES:,} lines with 500 more a second: a second", *found, 2.0)
            await ours.close()
            await bare.close()
            await mt.thread("bench").interrupt("all")


async def openings(browser: Browser) -> None:
    most = int(os.environ.get("MOST") or MOST)
    with folder() as small, folder() as big:
        fill(small / "work.db", FEW)
        fill(big / "work.db", most)
        async with (
            Meantime.open(small / "work.db", settings=UNLIMITED) as few,
            Meantime.open(big / "work.db", settings=UNLIMITED) as many,
            server(few, small) as door,
            server(many, big) as full,
        ):
            sides = ((first_rows.ours, door), (first_rows.bare, door), (first_rows.ours, full))
            found: list[list[tuple[Shown, Shown]]] = [[], [], []]
            for _ in range(OPENINGS):
                for times, (side, one) in zip(found, sides, strict=True):
                    times.append(await side(browser, one))
    _openings(most, *found)


def _openings(most: int, *found: list[tuple[Shown, Shown]]) -> None:
    names = (f"ours, {FEW:,} tasks", f"bare, {FEW:,} tasks", f"ours, {most:,} tasks")
    middle = [
        [Shown(*map(p50, zip(*one, strict=True))) for one in zip(*times, strict=True)] for times in found
    ]
    rows = [
        [name, *(ms(value) for one in times for value in one)]
        for name, times in zip(names, middle, strict=True)
    ]
    table("Until the first rows are seen", ["", "first visit", "CPU", "later visit", "CPU"], rows)
    ours, bare, full = middle
    for at, visit in enumerate(("first visit", "later visit")):
        for name in ("wall", "cpu"):
            own, base, grown = (getattr(one[at], name) for one in (ours, bare, full))
            print(f"  {visit}, {name}: {own / base:.2f}× of bare, {verdict(own / base, 1.5)}; ", end="")
            print(f"{most:,} tasks {grown / own:.2f}× of {FEW:,}, {verdict(grown / own, 1.3)}")


def weight() -> None:
    assets = Assets()
    opened = {name: len(assets.files[name].compressed or b"") for name in assets.opening}
    opened["/"] = len(assets.page.compressed or b"")
    files = {
        name: one for name, one in assets.files.items() if not name.startswith("styles/")
    }  # all are in SHEET
    app = sum(len(one.compressed or one.data) for one in files.values())
    whole = len(gzip.compress(b"".join(one.data for one in files.values())))
    total = sum(opened.values())
    print(f"\nGzipped: opening the page loads {total:,} bytes in {len(opened)} files, {verdict(total, SIZE)}")
    print(f"  all files {app:,} bytes one by one; {whole:,} in one piece")


async def run() -> None:
    weight()
    async with chromium() as browser:
        await openings(browser)
        await log(browser)
        await list_and_heap(browser)
    await dashboard_feed.run()
