"""What every test shares."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Meantime is written on asyncio."""
    return "asyncio"
