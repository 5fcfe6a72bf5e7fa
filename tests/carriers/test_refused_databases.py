"""A login that PostgreSQL refuses: in its own words, or by a reset."""

from __future__ import annotations

import struct

import pytest
from tests.refusing import refusing

from meantime.carriers.postgres.database_probe import look_at_database
from meantime.carriers.postgres.postgres_client import read_postgres_address

pytestmark = pytest.mark.anyio
STARTUP = 4096  # bytes: more than a client sends before it is answered


def fatal(code: str, text: str) -> bytes:
    fields = f"SFATAL\0VFATAL\0C{code}\0M{text}\0\0".encode()
    return b"E" + struct.pack("!i", len(fields) + 4) + fields


@pytest.mark.parametrize(
    ("code", "text"),
    [("28P01", "password authentication failed for user w"), ("53300", "sorry, too many clients already")],
)
async def test_the_words_of_a_server_that_closes_at_once_are_read(code: str, text: str):
    with refusing(fatal(code, text), reads=STARTUP) as server:
        look = await look_at_database(
            read_postgres_address(f"postgres://w:p@{server.address}/d?sslmode=disable")
        )
    assert look.problem == text


@pytest.mark.parametrize("reads", [0, STARTUP])
async def test_a_login_that_is_cut_off_without_a_word_says_where_to_look(reads: int):
    with refusing(b"", reads=reads) as server:
        look = await look_at_database(
            read_postgres_address(f"postgres://w:p@{server.address}/d?sslmode=disable")
        )
    assert "closed the connection at the login without a word. Its log says why." in look.problem
