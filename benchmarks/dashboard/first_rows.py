"""How long until the first rows are seen: the dashboard, and a page that fetches fifty rows."""

from __future__ import annotations

from typing import NamedTuple

from playwright.async_api import Browser

from meantime.surfaces.http.http_door import HttpDoor

from .browser import Tab, bare_url, tab

# Views that nobody opened are loaded once the browser is idle: that is after the first rows, and is left out.
WATCH = """
window.requestIdleCallback = () => 0;
new MutationObserver((_, observer) => {
  if (!document.querySelector(".row")) return;
  observer.disconnect();
  const shown = () => { document.documentElement.dataset.first = performance.now(); };
  requestAnimationFrame(() => requestAnimationFrame(shown));
}).observe(document, { childList: true, subtree: true });
"""


class Shown(NamedTuple):
    """Until the frame after the first rows, in seconds."""

    wall: float
    cpu: float  # of the main thread


async def shown(browser: Browser, url: str) -> tuple[Shown, Shown]:
    """In a browser that has cached nothing, and loaded again."""
    one = await tab(browser, WATCH)
    try:
        await one.page.goto(url)
        first = await _first(one)
        await one.page.reload()
        return first, await _first(one)
    finally:
        await one.close()


async def _first(one: Tab) -> Shown:
    """The policy of the page forbids scripts that poll; an attribute can be waited for. Each page that is
    loaded has a process of its own, whose clock begins with it."""
    marked = await one.page.wait_for_selector("html[data-first]", state="attached")
    assert marked is not None
    at = float(await marked.get_attribute("data-first") or "nan") / 1e3
    return Shown(at, (await one.cost()).cpu)


async def ours(browser: Browser, door: HttpDoor) -> tuple[Shown, Shown]:
    return await shown(browser, door.page_url())


async def bare(browser: Browser, door: HttpDoor) -> tuple[Shown, Shown]:
    return await shown(browser, bare_url(door, "rows"))
