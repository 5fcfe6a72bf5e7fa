"""docs/reference/python.md says what the classes say today."""

from __future__ import annotations

import re

import pytest
import write_reference as tool

import meantime

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def page() -> str:
    return tool.write()


def test_the_page_is_fresh(page):
    assert tool.PAGE.read_text("utf-8") == page, "stale: run `python tools/write_reference.py`"


def test_every_public_name_is_on_it(page):
    assert [name for name in meantime.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_nothing_private_is_on_it(page):
    assert re.findall(r"(?m)^(?:await )?_\w+", page) == []


def test_an_option_without_a_text_is_noticed():
    texts = {key: text for key, text in tool.TEXTS.items() if key != "start.parent"}
    with pytest.raises(ValueError, match=r"no docstring.*: start\.parent$"):
        tool.write(texts)


def test_a_text_without_an_option_is_noticed():
    with pytest.raises(ValueError, match=r"for nothing: start\.gone$"):
        tool.write({**tool.TEXTS, "start.gone": "It is gone."})
