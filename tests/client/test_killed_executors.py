"""kill -9 of a process with functions, in each dialect: what it ran is told once, and so is what it was just
being told; the next process of the conversation hears it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from conversations import DIALECTS, LOST, WORDS_LOST, Conversation, says
from daemon.conftest import Place, place_in
from meantime import Meantime

pytestmark = [pytest.mark.xdist_group("killed-executors"), pytest.mark.processes]
PROGRAM = Path(__file__).with_name("executing.py")


class Told(NamedTuple):
    done: str  # a task that had ended; the process was being told of it
    id: str  # the one that it ran
    told: list[str]
    word: str
    after_restart: list[str]
    refused: tuple[str, str]
    pending: list[str]


def kill_one(place: Place, *, owner_dies: bool) -> dict[str, list[str]]:
    """The ids of what it had handed off, and was being told, by dialect."""
    place.up()
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(place.home.link_socket)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    ids = json.loads(process.stdout.readline())
    if owner_dies:
        place.kill()
    process.kill()
    process.communicate()
    if owner_dies:
        place.up()
    return ids


async def story(place: Place, ids: dict[str, list[str]]) -> dict[str, Told]:
    found: dict[str, Told] = {}
    async with Meantime.connect(place.home.link_socket) as mt:
        conversations = {dialect: Conversation(mt, dialect) for dialect in DIALECTS}
        told: dict[str, tuple[list[str], str]] = {}
        for dialect, conversation in conversations.items():
            await conversation.ended(ids[dialect][1])
            told[dialect] = (await conversation.told(), await conversation.word(ids[dialect][1]))
        place.kill()
        place.up()
        for dialect, conversation in conversations.items():
            after = await conversation.told()
            refused = await conversation.resume(ids[dialect][1], "go on")
            first, second = ids[dialect]
            found[dialect] = Told(first, second, *told[dialect], after, refused, await conversation.pending())
    return found


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.processes)],
    ids=["the-owner-lives", "the-owner-is-killed-too"],
)
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """With a new owner nobody knows whether the process comes back, so it is waited for: 30 seconds."""
    with place_in(tmp_path_factory.mktemp("killed")) as place:
        ids = kill_one(place, owner_dies=request.param)
        return asyncio.run(story(place, ids))


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_it_ran_is_told_once_in_the_words_of_the_dialect(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    of_it = [text for text in one.told if one.id in text]
    assert says(of_it, LOST, dialect, one.id), one.told
    assert one.word == WORDS_LOST[dialect]
    assert one.after_restart == []
    assert one.pending == []


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_it_was_being_told_is_told_to_the_next(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    assert len(one.told) == 2
    assert one.done in one.told[0], "in the order of the endings"


@pytest.mark.behaviour("L16")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_function_has_no_conversation_to_resume(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    assert one.refused[0] != ""
    assert one.refused[1] == "not_resumable"
    assert not any("resume it" in text for text in one.told)
