"""Two pages of the same stream at the same time: the list of the dashboard, and a bare windowed list."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser

from meantime import Call, Context, Meantime, current
from meantime.surfaces.http.http_door import HttpDoor

from .browser import Cost, Tab, bare_url, tab

TASKS = 10_000
AT_ONCE = 500  # starts that share their commits
UPDATES = 200  # a second
PACE = 0.1  # seconds between two rounds of updates
# One step in every frame, down and up again. Frames are counted by both pages in the same way.
SCROLL = """() => {
  const view = document.querySelector(".list-scroll");
  window.frames_ = 0;
  let step = 24;
  const next = () => {
    window.frames_++;
    if (view.scrollTop + view.clientHeight >= view.scrollHeight - 40) step = -24;
    if (view.scrollTop <= 0) step = 24;
    view.scrollTop += step;
    window.scrolling = requestAnimationFrame(next);
  };
  next();
}"""
REST = "() => (cancelAnimationFrame(window.scrolling), window.frames_)"


class Stream:
    """Tasks that report progress, so many a second, one after the other."""

    def __init__(self) -> None:
        self.contexts: list[Context] = []
        self._next = 0

    async def fill(self, mt: Meantime) -> None:
        async def work() -> None:
            self.contexts.append(current())
            await asyncio.Event().wait()

        for first in range(0, TASKS, AT_ONCE):
            starts = [mt.thread(f"conv-{at % 20}").start(Call(work), description=f"task number {at}")
                      for at in range(first, first + AT_ONCE)]  # fmt: skip
            await asyncio.gather(*starts)
        async with asyncio.timeout(60):
            while len(self.contexts) < TASKS:  # noqa: ASYNC110  each says so itself, and none for all
                await asyncio.sleep(0.05)

    def report(self, count: int) -> None:
        for _ in range(count):
            self._next += 1
            context = self.contexts[self._next % TASKS]
            context.progress(self._next * 7 % 100, f"step {self._next}")

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        async def flow() -> None:
            due = time.perf_counter()
            while True:
                self.report(round(UPDATES * PACE))
                due += PACE
                await asyncio.sleep(max(0.0, due - time.perf_counter()))

        task = asyncio.create_task(flow())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def both(browser: Browser, door: HttpDoor, stream: Stream) -> tuple[Tab, Tab]:
    """The dashboard and the bare list, when both hold all tasks: those beyond the first snapshot come as
    patches."""
    ours, bare = await tab(browser), await tab(browser)
    await ours.page.goto(door.page_url())
    await bare.page.goto(bare_url(door, "list"))
    for one in (ours, bare):
        await one.page.wait_for_selector(".row")
    for _ in range(0, TASKS, AT_ONCE):
        stream.report(AT_ONCE)
        await asyncio.sleep(2 * PACE)
    await bare.page.wait_for_selector(f"html[data-rows='{TASKS}']", state="attached")
    await ours.page.wait_for_selector(f".list-scroll[aria-rowcount='{TASKS + 2}']", state="attached")
    return ours, bare


async def measured(one: Tab, seconds: float, *, scroll: bool) -> Cost:
    """Of the main thread, for a second of updates; while it is scrolled, for a frame."""
    if scroll:
        await one.page.evaluate(SCROLL)
    before, began = await one.cost(), time.perf_counter()
    await asyncio.sleep(seconds)
    used, times = await one.cost() - before, time.perf_counter() - began
    if scroll:
        times = await one.page.evaluate(REST)
    return Cost(*(value / times for value in used))
