"""Lesson 19: keep the conversation in the ledger, and exactly once is exact."""

from __future__ import annotations

import pytest

from meantime import Call, Thread

pytestmark = pytest.mark.anyio


async def test_the_transcript_and_the_ack_are_one_transaction(thread: Thread):
    """A crash between "saved" and "acknowledged" would tell twice. With our transcript there is no
    between: `ack(transcript=…)` writes both, or neither."""
    handle = await thread.start(Call(abs, -1))
    await handle.wait()
    transcript = thread.transcript
    transcript.add(None, "please look into it", role="user")

    async with thread.turn() as turn:
        for notice in turn.notices:
            transcript.add(notice.id, notice.message())
        await turn.ack(transcript=transcript)

    assert [entry.notice for entry in await thread.transcript.entries()] == [None, f"{handle.id}.1"]


async def test_a_thread_has_one_transcript(thread: Thread):
    """Ask for it as often as you like: what was added is there until it is saved."""
    handle = await thread.start(Call(abs, -1))
    await handle.wait()
    async with thread.turn() as turn:
        thread.transcript.add(turn.notices[0].id, turn.notices[0].message())
        thread.transcript.add(None, "Thank you.", role="assistant")
        await turn.ack(transcript=thread.transcript)

    assert [entry.notice for entry in await thread.transcript.entries()] == [f"{handle.id}.1", None]


async def test_a_notice_gets_in_once(thread: Thread):
    """However often it is added. `has` looks it up."""
    handle = await thread.start(Call(abs, -1))
    await handle.wait()
    transcript = thread.transcript
    async with thread.turn() as turn:
        notice = turn.notices[0]
        for _ in range(3):
            transcript.add(notice.id, notice.message())
        await turn.ack(transcript=transcript)

    assert len(await thread.transcript.messages()) == 1
    assert await thread.transcript.has(notice)
