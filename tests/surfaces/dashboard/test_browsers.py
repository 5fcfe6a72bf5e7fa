"""The browsers themselves: that they are driven, and that what a page complains of is noticed."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext
from tests.cli.person import Person

from .chromium import Console, needs_chromium, violations
from .firefox import firefox, needs_firefox

pytestmark = pytest.mark.browsers


@needs_chromium
def test_chromium_reports_complaints_and_violations(window: BrowserContext, person: Person) -> None:
    page = window.new_page()
    console = Console(page)
    page.goto(f"{address(person)}/v1/health")
    page.evaluate("() => console.error('a complaint')")
    page.evaluate("() => { document.documentElement.removeAttribute('lang'); document.title = '' }")

    assert console.complaints[-1] == "error: a complaint"
    assert any(one.startswith("html-has-lang") for one in violations(page))


@needs_firefox
def test_firefox_evaluates_presses_keys_and_reports_complaints(person: Person) -> None:
    with firefox() as one:
        one.go(f"{address(person)}/v1/health")
        one.evaluate("addEventListener('keydown', event => document.title += event.key)")
        one.press("j", "k")
        one.until("document.title == 'jk'")
        one.evaluate("console.error('a complaint')")
        one.until("true")

        assert "a complaint" in one.complaints


def address(person: Person) -> str:
    """Where the daemon listens. The first verb starts it."""
    assert person("ps").code == 0
    return person.info()["url"]
