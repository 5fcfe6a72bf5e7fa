"""What the tests of every framework share."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Meantime is written on asyncio."""
    return "asyncio"
