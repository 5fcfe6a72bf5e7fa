"""Whoever sees a question in a list can answer it, even in the moment of its commit."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Agent, Meantime

pytestmark = pytest.mark.anyio


async def paint(talk):
    return str(await talk.ask("Which colour?", "red", "blue"))


@pytest.mark.parametrize("ledger", [":memory:", "work.db"])
async def test_a_question_that_is_listed_can_be_answered(tmp_path: Path, ledger: str):
    path = ledger if ledger == ":memory:" else tmp_path / ledger
    async with asyncio.timeout(LIMIT), Meantime.open(path, agents={"paint": paint}) as mt:
        for _ in range(20):
            handle = await mt.thread("a").start(Agent("paint", "Paint the door."))
            while not await mt.list("waiting"):  # noqa: ASYNC110  a pause would miss the commit
                await asyncio.sleep(0)
            await mt.answer(handle.id, "blue")
            assert await handle.result() == "blue"
