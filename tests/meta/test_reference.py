"""docs/reference/python.md says what the classes say today."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import meantime

TOOL = Path(__file__).resolve().parents[2] / "tools" / "write_reference.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("write_reference", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(tool) -> str:
    return tool.write()


def test_the_page_is_fresh(tool, page):
    assert tool.PAGE.read_text("utf-8") == page, "stale: run `python tools/write_reference.py`"


def test_every_public_name_is_on_it(page):
    assert [name for name in meantime.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_nothing_private_is_on_it(page):
    assert re.findall(r"(?m)^(?:await )?_\w+", page) == []


def test_an_option_without_a_text_is_noticed(tool):
    texts = {key: text for key, text in tool.TEXTS.items() if key != "start.parent"}
    with pytest.raises(ValueError, match=r"no docstring.*: start\.parent$"):
        tool.write(texts)


def test_a_text_without_an_option_is_noticed(tool):
    with pytest.raises(ValueError, match=r"for nothing: start\.gone$"):
        tool.write({**tool.TEXTS, "start.gone": "It is gone."})
