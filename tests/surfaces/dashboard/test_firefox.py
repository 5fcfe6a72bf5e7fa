"""The page in Firefox ESR: opened by a link, moved through by keyboard, a log read."""

from __future__ import annotations

import pytest

from .desk import Desk
from .firefox import firefox, needs_firefox

pytestmark = pytest.mark.browsers

ENTER, ESCAPE = "\ue007", "\ue00c"  # as WebDriver writes them


@needs_firefox
def test_firefox_opens_the_page_a_task_by_keyboard_and_its_log(person: Desk) -> None:
    person.until(person.hand_off(r"printf '\033[31mred words\033[0m\n'", "print in red"), "completed")
    with firefox() as one:
        one.go(person.link())
        one.until("document.querySelector('.live')?.textContent == 'Live'")
        one.until("document.querySelector('.row')?.textContent.includes('print in red')")
        assert one.evaluate("location.hash") == ""
        one.press("j")
        one.until("document.querySelector('.row[data-current]') !== null")
        one.press(ENTER)
        one.until("document.querySelector('h1')?.textContent == 'print in red'")
        one.press("3")
        one.until("document.querySelector('.log-line')?.textContent.includes('red words')")
        red, plain = (
            one.evaluate(f"getComputedStyle(document.querySelector('{place}')).color")
            for place in (".log-line .ansi-1", ".log-line")
        )
        assert red != plain
        one.press(ESCAPE)
        one.until("document.querySelector('.row[data-current]') !== null")

        assert one.complaints == []
