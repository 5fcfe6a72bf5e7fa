"""A log of 100,000 lines that grows by 500 a second: the log of the dashboard, and a windowed <pre>."""

from __future__ import annotations

import asyncio
import sys
import time

from playwright.async_api import Browser

from meantime import Meantime, Shell
from meantime.surfaces.http.http_door import HttpDoor

from .browser import Cost, Tab, bare_url, tab

LINES = 100_000
PRINT = """
import sys, time
def line(at):
    colour = "\\x1b[3%dm%s\\x1b[0m" % (at % 6 + 1, "PASSED") if at % 4 == 0 else "passed"
    return "line %06d %s in 12 ms\\n" % (at, colour)
out, at = sys.stdout, int(sys.argv[1])
out.write("".join(map(line, range(at))))
out.flush()
due = time.monotonic()
while True:
    out.write("".join(map(line, range(at, at + 50))))
    out.flush()
    at += 50
    due += 0.1
    time.sleep(max(0, due - time.monotonic()))
"""


async def opened(browser: Browser, mt: Meantime, door: HttpDoor) -> tuple[Tab, Tab]:
    """Both pages, when each holds the whole log and follows it."""
    command = Shell([sys.executable, "-c", PRINT, str(LINES)])
    task = await mt.thread("bench").start(command, description="a long log")
    ours, bare = await tab(browser), await tab(browser)
    link = f"{door.page_url()}&go=/tasks/{task.id}"
    await ours.page.goto(link)
    await ours.page.wait_for_selector(".tabs")
    await ours.page.goto(f"{door.url}/?task={task.id}&tab=log")
    await bare.page.goto(bare_url(door, "log", f"?task={task.id}"))
    await ours.page.wait_for_selector(".log-line")
    async with asyncio.timeout(60):
        while await _lines(ours, ".log-foot") < LINES or await _lines(bare, "html") < LINES:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    return ours, bare


async def _lines(one: Tab, place: str) -> int:
    if place == "html":
        return int(await one.page.get_attribute("html", "data-lines") or 0)
    said = await one.page.inner_text(place)
    return int("".join(letter for letter in said.partition("line")[0] if letter.isdigit()) or 0)


async def measured(one: Tab, seconds: float) -> Cost:
    """Of the main thread, for a second of output."""
    before, began = await one.cost(), time.perf_counter()
    await asyncio.sleep(seconds)
    used, times = await one.cost() - before, time.perf_counter() - began
    return Cost(*(value / times for value in used))
