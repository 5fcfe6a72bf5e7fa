"""What the chat keeps of what was typed, when the ledger cannot always be reached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from meantime import Meantime, Thread
from meantime.kernel.errors import Disconnected
from meantime.ports.store import Entry
from meantime.surfaces.chat.conversation import Conversation
from meantime.surfaces.chat.speech import Speech

pytestmark = pytest.mark.anyio


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[Thread]:
    async with Meantime.open(tmp_path / "work.db") as mt:
        yield mt.thread("talk")


async def begun(thread: Thread) -> Conversation:
    """A life of the chat: what it finds of those before it."""
    conversation = Conversation(thread, Speech())
    await conversation.load()
    return conversation


async def say(thread: Thread, conversation: Conversation, text: str) -> None:
    async with thread.turn() as turn:
        await conversation.hold(turn, turn.notices, [text])


async def test_P3_a_line_that_was_kept_after_it_was_said_is_not_said_again(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    """The daemon was away for a moment: the line was said all the same, and written with the next."""
    conversation = await begun(thread)

    async def away(thread: str, entries: Sequence[Entry]) -> None:
        raise Disconnected("nobody is there")

    with monkeypatch.context() as patch:
        patch.setattr(thread._tasks, "append", away)
        await conversation.typed("delete the old release")
    await say(thread, conversation, "delete the old release")
    await conversation.typed("and what is left?")

    assert (await begun(thread)).unsaid == ["and what is left?"]
