"""A scripted API for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .scripted_api import ScriptedAPI


@pytest.fixture
def api() -> Iterator[ScriptedAPI]:
    made = ScriptedAPI()
    try:
        yield made
    finally:
        made.close()
