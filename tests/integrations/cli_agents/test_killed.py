"""kill -9 of a command-line agent's own process, in each dialect: told once, in its words, and resumable."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from conversations import DIALECTS, FAILED, RESUMED, WORDS_FAILED, says
from daemon.conftest import place_in
from killed_agents import Told, story

from .conftest import PROGRAM, Program, script

pytestmark = [pytest.mark.xdist_group("killed-cli"), pytest.mark.processes]


class Scripted:
    working = script({"say": "half of the work"}, {"gate": "never"})
    follow_up = "go on"

    def __init__(self, folder: Path) -> None:
        self._program = Program(folder)
        command = json.dumps([sys.executable, str(PROGRAM), str(folder)])
        self.config = f'[agents.one]\nrunner = "cli"\nprofile = "claude"\ncommand = {command}\n'

    def pids(self) -> list[int]:
        return [given["pid"] for given in self._program.given]

    async def until(self, count: int) -> None:
        await self._program.waits("never", count)


@pytest.fixture(
    scope="module",
    params=[False, pytest.param(True, marks=pytest.mark.breadth)],
    ids=["the-owner-lives", "the-owner-is-killed-too"],
)
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """A command-line agent outlives its owner: the next one finds that it was killed meanwhile."""
    folder = tmp_path_factory.mktemp("killed")
    with place_in(folder) as place:
        return asyncio.run(story(place, Scripted(folder / "program"), owner_dies=request.param))


@pytest.mark.behaviour("P5")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_told_once_in_the_words_of_the_dialect(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    assert says(one.told, FAILED, dialect, one.id), one.told
    assert "SIGKILL" in one.told[0] or "killed by signal 9" in one.told[0]
    assert "half of the work" in one.told[0]
    assert one.word == WORDS_FAILED[dialect]
    assert one.after_restart == []


@pytest.mark.behaviour("L16")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_is_resumed_and_told_once_more(killed: dict[str, Told], dialect: str):
    one = killed[dialect]
    assert one.refused[1] == "", "the host can resume it, whatever the dialect lets its model do"
    assert says(one.resumed, RESUMED, dialect, one.id), one.resumed
    assert "heard 1: go on" in one.resumed[0], "it knows what was said before"
    assert one.pending == []
