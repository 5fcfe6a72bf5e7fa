"""Lesson 18: mark a function, and a model can ask for it."""

from __future__ import annotations

import pytest

from meantime import InvalidInput, Thread, background

pytestmark = pytest.mark.anyio


@background
def search(query: str, limit: int = 10) -> list[str]:
    """Searches the archive."""
    return [query] * limit


async def test_background_has_a_schema(thread: Thread):
    """`@background` reads the signature: `tool` is what tool-calling models want to be given.

    The function still is a function; `work(...)` makes the order for a background run of it.
    """
    assert search.tool == {
        "name": "search",
        "description": "Searches the archive.",
        "input_schema": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}},
            "required": ["query"],
            "additionalProperties": False,
        },
    }
    assert search("x", limit=2) == ["x", "x"]

    handle = await thread.start(search.work("x", limit=3))
    assert await handle.result() == ["x", "x", "x"]


async def test_wrong_arguments_are_refused_at_once(thread: Thread):
    """Before anything is on record: a model's mistake comes back to it in the same turn."""
    with pytest.raises(InvalidInput, match="unexpected keyword"):
        await thread.start(search.work("x", colour="red"))  # pyright: ignore[reportCallIssue]
    assert await thread.list("all") == []
