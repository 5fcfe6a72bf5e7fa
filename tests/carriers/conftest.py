"""Servers of the carriers: PostgreSQL once for a session."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from .postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server
