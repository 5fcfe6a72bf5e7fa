"""A browser with two pages: the dashboard, and beside it a bare page, both from the same server."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, CDPSession, Page, async_playwright

from meantime import Meantime
from meantime.surfaces.dashboard.assets import FOLDER, Assets
from meantime.surfaces.http import asgi_app
from meantime.surfaces.http.http_door import HttpDoor

BARE = Path(__file__).parent / "bare"
PATIENCE = 120_000  # milliseconds: a page with a long log on a busy machine
ARGUMENTS = [
    "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1;localhost",
]  # fmt: skip


class Cost(NamedTuple):
    """Seconds of the main thread since the page was opened."""

    cpu: float  # of the thread, whatever else the machine did
    script: float
    layout: float  # styles, too

    def __sub__(self, other: Cost) -> Cost:
        return Cost(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


class Tab:
    """One page, and the counters of its main thread."""

    def __init__(self, page: Page, session: CDPSession) -> None:
        self.page = page
        self._session = session

    async def metrics(self) -> dict[str, float]:
        found = await self._session.send("Performance.getMetrics")
        return {one["name"]: one["value"] for one in found["metrics"]}

    async def cost(self) -> Cost:
        found = await self.metrics()
        layout = found["LayoutDuration"] + found["RecalcStyleDuration"]
        return Cost(found["ThreadTime"], found["ScriptDuration"], layout)

    async def heap(self) -> float:
        """Bytes that JavaScript holds once everything unreachable was collected."""
        await self._session.send("HeapProfiler.collectGarbage")
        return (await self.metrics())["JSHeapUsedSize"]

    async def close(self) -> None:
        await self.page.context.close()


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("Chromium is missing: make browsers installs it.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


async def tab(browser: Browser, script: str = "") -> Tab:
    """An empty page of a browser that has cached nothing. `script` is run before those of a page."""
    context = await browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(PATIENCE)
    if script:
        await context.add_init_script(script)
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return Tab(page, session)


@asynccontextmanager
async def server(mt: Meantime, folder: Path) -> AsyncIterator[HttpDoor]:
    """Serves the page and the bare ones beside it: both have the same server, headers and policies."""
    files = folder / "static"
    shutil.copytree(FOLDER, files)
    shutil.copytree(BARE, files / "bare")
    real, asgi_app.installed = asgi_app.installed, lambda: Assets(files)
    try:
        async with mt.serve(port=0) as door:
            yield door
    finally:
        asgi_app.installed = real  # type: ignore[assignment]


def bare_url(door: HttpDoor, name: str, query: str = "") -> str:
    return f"{door.url}/assets/bare/{name}.html{query}#{door.token}"
