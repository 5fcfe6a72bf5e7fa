"""Programs of others, where they are installed."""

from __future__ import annotations

import pytest

from .agents.installed import mark_by_program


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark_by_program(items)
