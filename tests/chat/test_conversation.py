"""What the chat keeps of what was typed, when the ledger cannot always be reached."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from meantime import Meantime, Thread
from meantime.kernel.errors import Disconnected
from meantime.ports.store import Entry
from meantime.surfaces.chat.chat_dialect import Speech
from meantime.surfaces.chat.chat_transcript import ChatTranscript
from meantime.system.process import Process, process

pytestmark = pytest.mark.anyio
ME = process(os.getpid())
GONE = replace(ME, started=ME.started - 1)  # had our pid, and has ended


@pytest.fixture
async def thread(tmp_path: Path) -> AsyncIterator[Thread]:
    async with Meantime.open(tmp_path / "work.db") as mt:
        yield mt.thread("talk")


async def begun(thread: Thread, by: Process = GONE) -> ChatTranscript:
    """A life of the chat: what it finds of those before it."""
    conversation = ChatTranscript(thread, Speech(), by)
    await conversation.load()
    return conversation


async def say(thread: Thread, conversation: ChatTranscript, text: str) -> None:
    async with thread.turn() as turn:
        await conversation.hold(turn, turn.notices, [text])


@pytest.mark.behaviour("P3")
async def test_a_line_that_was_kept_after_it_was_said_is_not_said_again(
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


@pytest.mark.behaviour("P3")
@pytest.mark.parametrize("by", [GONE, replace(ME, boot="another start of the machine")])
async def test_what_a_chat_that_is_gone_left_is_said(thread: Thread, by: Process):
    await (await begun(thread, by)).typed("go on")
    assert (await begun(thread)).unsaid == ["go on"]


@pytest.mark.behaviour("P3")
async def test_what_a_chat_that_still_runs_has_not_said_yet_is_left_to_it(thread: Thread):
    """Two terminals in one conversation."""
    first = await begun(thread, ME)
    await first.typed("deploy it")
    assert (await begun(thread)).unsaid == []
    assert first.unsaid == ["deploy it"]


@pytest.mark.behaviour("P3")
async def test_an_answer_is_owed_by_the_chat_that_took_the_turn_as_long_as_it_runs(thread: Thread):
    await say(thread, await begun(thread, ME), "deploy it")
    assert not (await begun(thread)).is_owed, "the other terminal is about to answer"
    await say(thread, await begun(thread, GONE), "is it there?")
    assert (await begun(thread, ME)).is_owed
