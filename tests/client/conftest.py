"""What the tests of a connected process share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .pair import Pair


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    pair = Pair(tmp_path)
    await pair.open()
    yield pair
    await pair.close()
