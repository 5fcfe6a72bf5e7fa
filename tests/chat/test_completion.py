"""Ids and counts of tasks are those of now."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.person import Person
from meantime import Call, Meantime
from meantime.kernel.model import Task
from meantime.surfaces.chat.task_view import TaskView
from runtimes import runtime_of

from .conftest import Talk
from .test_commands import start
from .test_talking import until_there

pytestmark = pytest.mark.processes

# The chat, whose list of tasks is read once and then not again for an hour.
READS_ONCE = (
    "import meantime.surfaces.chat.task_view as view; view.PAUSE = 3_600;"
    "from meantime.app.main import main; main()"
)


def test_ids_are_read_when_they_are_asked_for(talk: Talk, tmp_path: Path):
    terminal = talk(program=[sys.executable, "-c", READS_ONCE]).ready()
    ended = start(terminal, "true")
    terminal.sees("true has completed.")
    runs = start(terminal, until_there(tmp_path / "go"))
    terminal.type("/task end ")
    terminal.sees(f"{runs}  until")
    assert f"{ended}  true" not in terminal.text
    (tmp_path / "go").touch()


def test_the_first_toolbar_has_the_counts(talk: Talk, person: Person, thread: str):
    id = person.start("--thread", thread, "--", "sleep", "600")
    terminal = talk().ready()
    terminal.sees("1 running · 0 ended")
    assert b"0 running" not in terminal.raw
    person("cancel", id)


def test_a_task_that_ends_leaves_the_menu(talk: Talk, tmp_path: Path):
    terminal = talk().ready()
    quick = start(terminal, until_there(tmp_path / "quick"))
    slow = start(terminal, until_there(tmp_path / "slow"))
    terminal.type("/task end ")
    terminal.sees(f"{quick}  until", f"{slow}  until")
    (tmp_path / "quick").touch()
    terminal.until(lambda: f"{quick}  until" not in terminal.text, "the end of the option")
    terminal.sees(f"{slow}  until")
    (tmp_path / "slow").touch()


@pytest.mark.anyio
async def test_a_task_that_ends_during_the_look_is_ended(monkeypatch: pytest.MonkeyPatch):
    async with Meantime.open(":memory:") as mt:
        tasks, go = runtime_of(mt), asyncio.Event()
        handle = await mt.thread("chat").start(Call(go.wait))
        looks = tasks.list

        async def looks_and_ends(*given: Any, **more: Any) -> Sequence[Task]:
            found = await looks(*given, **more)
            go.set()
            await handle.wait()
            return found

        monkeypatch.setattr(tasks, "list", looks_and_ends)
        view = TaskView(tasks, "chat", lambda: None)
        await view.look()
        assert (list(view.active), [task.id for task in view.ended]) == ([], [handle.id])
