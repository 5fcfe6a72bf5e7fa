"""The real executable on a real terminal, with a real daemon: one for each file of tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.person import Person

from .terminal import MEANTIME, Terminal

Talk = Callable[..., Terminal]


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    one = Person(tmp_path_factory.mktemp("home"))
    one.environ["TERM"] = "xterm-256color"
    one.up()
    yield one
    one.leave()


@pytest.fixture
def thread(request: pytest.FixtureRequest) -> str:
    """Each test has a conversation of its own."""
    return re.sub(r"[^A-Za-z0-9._:-]+", "-", request.node.name)[:100]


@pytest.fixture
def talk(person: Person, thread: str, tmp_path: Path) -> Iterator[Talk]:
    """Opens the chat; again is the same conversation."""
    opened: list[Terminal] = []

    def begin(
        *options: str, program: list[str] | None = None, columns: int = 100, **environ: str
    ) -> Terminal:
        command = [*(program or MEANTIME), "chat", "--thread", thread, *options]
        opened.append(Terminal(command, {**person.environ, **environ}, tmp_path, columns=columns))
        return opened[-1]

    yield begin
    for terminal in opened:
        terminal.close()
