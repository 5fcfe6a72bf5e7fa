"""Lesson 26: a watch tells its conversation what it finds, before anything ends."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime import Shell, Thread, Watch

pytestmark = pytest.mark.anyio


async def test_a_line_of_a_log_is_told_while_the_command_runs(thread: Thread):
    """The watch is a task of its own. An idle agent is woken by each match."""
    server = await thread.start(Shell("cat", open_stdin=True))
    watch = await thread.start(Watch(log=server, match="ERROR|panic"))

    await server.send("listening\nERROR: no database\n")
    async with asyncio.timeout(LIMIT):
        await anext(aiter(thread.wakeups()))
    async with thread.turn() as turn:
        (notice,) = turn.notices
        assert (notice.kind, notice.id) == ("event", f"{watch.id}.1.1")
        assert notice.text == "ERROR: no database"
        await turn.ack()

    await server.send(eof=True)
    assert await watch.result() == "matched once until its task ended"


async def test_a_watch_may_end_with_its_first_match_or_at_a_deadline(thread: Thread):
    """The match that ends it is told by its ending: one notice, not two."""
    server = await thread.start(Shell("echo ready on 8080; exec sleep 600"))

    first = await thread.start(Watch(log=server, match="ready", once=True))
    never = await thread.start(Watch(log=server, match="nothing like this", deadline=0.1))

    assert await first.result() == "matched once\nready on 8080"
    assert await never.result() == "nothing matched until the deadline"
    await server.cancel(wait=True)
