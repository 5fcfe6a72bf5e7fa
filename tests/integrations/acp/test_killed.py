"""kill -9 of an ACP agent's own process, in each dialect: told once, in its words, and resumable."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.waiting import until_async

from conversations import DIALECTS, LOST, REFUSED, RESUMED, WORDS_LOST, says
from daemon.conftest import place_in
from killed_agents import Told, story

from ..agents.installed import GOOSE, needs
from ..agents.model import Model, script
from .conftest import SCRIPTED, Peer
from .test_real import Goose

pytestmark = [pytest.mark.xdist_group("killed-acp"), pytest.mark.processes]


class Scripted:
    working = json.dumps([{"say": "half of the work"}, {"wait": "never"}])
    follow_up = "go on"

    def __init__(self, folder: Path) -> None:
        self._peer = Peer(folder)
        command = json.dumps([sys.executable, str(SCRIPTED), str(folder)])
        self.config = f'[agents.one]\nrunner = "acp"\ncommand = {command}\n'

    def pids(self) -> list[int]:
        return [int(pid) for pid in self._peer.lines("starts")]

    async def until(self, count: int) -> None:
        await self._peer.until("waits", count)


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.breadth)],
    ids=["the-owner-lives", "the-owner-is-killed-too"],
)
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    folder = tmp_path_factory.mktemp("killed")
    with place_in(folder) as place:
        return asyncio.run(story(place, Scripted(folder / "peer"), owner_dies=request.param))


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_told_once_in_the_words_of_the_dialect(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    assert says(one.told, LOST, dialect, one.id), one.told
    assert one.word == WORDS_LOST[dialect]
    assert one.after_restart == []


@pytest.mark.behaviour("I7")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_it_had_said_is_told(killed: dict[str, Told], dialect: str):
    """A message that it has not ended is in the memory of its owner only."""
    text = killed[dialect].told[0]
    assert "half of the work" in text or "The process that ran it ended" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_only_who_can_resume_it_is_advised_to(killed: dict[str, Told], dialect: str):
    """Seeds 000 and 001 let completed tasks be resumed, and no others; 002 to 004 have no resume."""
    one = killed[dialect]
    assert "Its session is kept" in one.told[0]
    assert ("resume it to go on" in one.told[0]) is (dialect == "meantime")
    assert one.refused == (REFUSED[dialect], "")


@pytest.mark.behaviour("L16")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_resumed_and_told_once_more(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    assert says(one.resumed, RESUMED, dialect, one.id), one.resumed
    assert "echo go on" in one.resumed[0]
    assert one.pending == []


class RealGoose(Goose):
    """goose in the middle of a question to its model."""

    working = script({"hang": True})
    follow_up = script({"text": "and on"})

    @property
    def config(self) -> str:
        given = self.given()
        env = ", ".join(f"{name} = {json.dumps(value)}" for name, value in given["env"].items())
        command = json.dumps(list(given["command"]))
        return f'[agents.one]\nrunner = "acp"\ncommand = {command}\nenv = {{{env}}}\n'

    def pids(self) -> list[int]:
        home = f"HOME={self.folder / 'user'}\0".encode()
        processes = [path.parent for path in Path("/proc").glob("[0-9]*/environ") if home in _read(path)]
        return [int(path.name) for path in processes if _read(path / "cmdline").startswith(bytes(GOOSE))]

    async def until(self, count: int) -> None:
        await until_async(lambda: self.model.thinking >= count, f"{count} ask the model")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # another user's, or gone
        return b""


@pytest.mark.behaviour("P5")
@needs(GOOSE)
def test_a_real_goose_that_is_killed_is_told_once_and_resumed(tmp_path: Path):
    model = Model()
    try:
        with place_in(tmp_path) as place:
            goose = RealGoose(tmp_path, model)
            (one,) = asyncio.run(story(place, goose, owner_dies=False, dialects=["meantime"])).values()  # pyright: ignore[reportArgumentType]
    finally:
        model.close()
    assert says(one.told, LOST, "meantime", one.id), one.told
    assert "The agent's process ended with SIGKILL." in one.told[0]
    assert one.after_restart == []
    assert says(one.resumed, RESUMED, "meantime", one.id), one.resumed
    assert "\nand on\n" in one.resumed[0]
    assert one.pending == []
    assert "hang" in model.turns[-1].text, "it knows what it was asked before"
