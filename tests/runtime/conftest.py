"""These run over a socket, too: in a process that is connected to the owner of the ledger."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["memory", "sqlite", "connected"])
def place(request: pytest.FixtureRequest) -> str:
    return request.param
