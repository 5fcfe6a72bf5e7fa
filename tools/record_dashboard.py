"""Records the pictures of the dashboard in docs/pictures again, from a real run in Chromium.

    python tools/record_dashboard.py

A ledger of its own is filled with real commands, functions and agents (scripted: there is no model). Then the
page is photographed in light and dark. `make browsers` installs Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from meantime import Agent, Call, Shell, current
from meantime.blocking import Meantime
from meantime.kernel.lines import Kind, Line

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
SIZE = {"width": 1440, "height": 900}
LIMIT = 60.0  # seconds for anything
GO_ON = threading.Event()  # set when the pictures are there
ARGUMENTS = [
    "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--proxy-server=127.0.0.1:9", "--proxy-bypass-list=127.0.0.1;localhost",
]  # fmt: skip
TESTS = r"""
for i in $(seq 1 60); do printf 'tests/auth/test_%02d.py::test_login \033[32mPASSED\033[0m\n' $i; done
printf '\033[33mWARNING\033[0m auth.limits: locked for 30 s\n'
printf 'tests/auth/test_refresh.py::test_rotates \033[31mFAILED\033[0m\n'
printf '\033[1;31mE   assert second.token != first.token\033[0m\n'; exit 1
"""


def index(files: int) -> str:
    """A function that says how far it is."""
    for done in range(1, files):
        current().progress(round(62 * done / files), message=f"{done} of {files} files")
    GO_ON.wait(LIMIT)
    return f"{files} files"


async def review(talk: Any) -> AsyncIterator[str | Line]:
    yield "I read the change first."
    calls = (("glob", "src/auth/**/*.py", "27 files"), ("grep", "refresh_token", "31 matches"))
    for number, (tool, argument, result) in enumerate(calls):
        yield Line(
            role="assistant", kind=Kind.CALL, tool=tool, arguments={"pattern": argument}, call=str(number)
        )
        yield Line(role="tool", kind=Kind.RESULT, tool=tool, text=result, call=str(number))
    talk.spent(turns=1, tokens=48_210, cost=0.31)
    if not await talk.allowed("bash", {"command": "git push origin preview/auth-fix"}):
        return
    yield "Pushed."


def fill(mt: Any) -> None:
    """Three conversations: told, unread, running, waiting for a person, failed, cancelled."""
    auth, docs = mt.thread("conv-7"), mt.thread("conv-9")
    auth.start(Shell("sleep 0.3; echo 48 files written"), description="Generate client stubs").wait()
    with auth.turn() as turn:
        turn.ack()
    auth.start(Shell(TESTS), description="pytest -v tests/auth", batch="auth-fix", id="pytest").wait()
    auth.start(Agent("review", "Review change 412."), description="Review change 412", batch="auth-fix")
    auth.start(Call(index, 1_204), description="Index repository", batch="auth-fix")
    docs.start(Shell("sleep 600"), description="npm install")
    stopped = docs.start(Shell("sleep 600"), description="Crawl API reference")
    stopped.cancel(wait=True)
    docs.start(Shell("echo 27 collections"), description="Index documentation").wait()
    until(lambda: mt.list("waiting"))


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError("The scene was not set in time.")
        time.sleep(0.05)


def photograph(page: Page, base: str, theme: str) -> None:
    page.wait_for_selector(".row")
    page.wait_for_timeout(1_500)  # clocks and bars move: any moment is a true picture
    page.screenshot(path=PICTURES / f"dashboard-list-{theme}.png")
    for name, address, shown in (
        ("log", "?task=pytest&tab=log", ".log-line"),
        ("conversation", "?thread=conv-7", "text=Generate client stubs"),
        ("question", "?answer=next", "text=git push origin"),
    ):
        page.goto(base + address)
        page.wait_for_selector(shown)
        page.wait_for_timeout(500)
        page.screenshot(path=PICTURES / f"dashboard-{name}-{theme}.png")


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is missing: make browsers installs it.")
    with (
        tempfile.TemporaryDirectory() as folder,
        Meantime.open(Path(folder) / "work.db", agents={"review": review}) as mt,
        mt.serve(port=0) as door,
        sync_playwright() as playwright,
    ):
        fill(mt)
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=theme)  # type: ignore[arg-type]
            page.goto(door.page_url())
            photograph(page, f"{door.url}/", theme)
        browser.close()
        GO_ON.set()
        for task in mt.list():
            mt.cancel(task.id)


if __name__ == "__main__":
    main()
