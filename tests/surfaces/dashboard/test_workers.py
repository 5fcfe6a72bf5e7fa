"""Workers on other machines: a real carrier, a real worker, and what the page says of them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.cli.person import MEANTIME
from tests.waiting import LIMIT, until

from .chromium import Tabs, needs_chromium, violations
from .desk import Desk

pytestmark = [needs_chromium, pytest.mark.browsers]


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A daemon with its own carrier, and one worker of the pool `default`."""
    one = Desk(tmp_path_factory.mktemp("home"), '[engine]\ncarrier = "local"\n')
    one.up()
    with (one.folder / "worker.log").open("ab") as log:
        worker = subprocess.Popen([*MEANTIME, "worker"], env=one.environ, stdout=log, stderr=log)
    try:
        until(lambda: one.get("/v1/info")["workers"], "the worker has joined")
        yield one
    finally:
        worker.terminate()
        worker.wait(LIMIT)
        one.leave()


def test_the_page_shows_workers_and_where_a_task_runs(site: Desk, tabs: Tabs) -> None:
    task = site.hand_off("exec sleep 600", "far away", place="pool:default")
    site.until(task, "running")
    name = site.task(task)["worker"]
    page = tabs.enter(site.link())
    expect(page.locator(".row-now")).to_have_text(f"on {name}")
    expect(page.locator("#rail-workers + ul .rail-count")).to_have_text(re.compile(r"^[01]/\d+$"))
    page.keyboard.press("W")

    row = page.locator(".workers tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(name)
    expect(row).to_contain_text("default")
    expect(row).to_contain_text("ago")
    assert violations(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    expect(page.locator(".row")).to_have_count(1)
    page.goto(f"{site.info()['url']}/?task={task}")
    expect(page.locator(".facts", has_text="Runs on").first).to_contain_text(name)
    site.post(f"/v1/tasks/{task}/cancel")
