"""Tests of the project's own files."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A module here reads all sources or pages once, for seconds, so one process runs its tests. Slow ones
    have nothing in common."""
    for item in items:
        if item.path.parent == HERE and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="module", autouse=True)
def unhurried_collector() -> Iterator[None]:
    """Python 3.11 fails to parse a source ("AST constructor recursion depth mismatch") if the garbage
    collector meanwhile runs a finalizer whose warning is formatted, which parses a line of source, too."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
