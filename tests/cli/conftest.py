"""The real executable against a real daemon, one for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .person import Person


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Somebody with a home of their own, and a daemon."""
    one = Person(tmp_path_factory.mktemp("home"))
    one.up()
    yield one
    one.leave()


@pytest.fixture
def loner(tmp_path: Path) -> Iterator[Person]:
    """The same for one test alone, which may harm the daemon. It starts with the first verb that needs it."""
    one = Person(tmp_path)
    yield one
    one.leave()
