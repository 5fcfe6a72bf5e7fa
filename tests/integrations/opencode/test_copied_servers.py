"""P11: a server that is remembered in a copied folder is the original's; nobody else ends it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from meantime.integrations.opencode.server import OpenCodeServer, end_left, remembered

pytestmark = [pytest.mark.anyio, pytest.mark.agents]


class Left:
    """A program that stands for a server which a former owner has left running."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder.parent / "serve"
        self.program.write_text("#!/bin/sh\necho listening on http://127.0.0.1:1/ \nexec sleep 600\n")
        self.program.chmod(0o755)
        self.pid = 0

    async def start(self) -> None:
        server = OpenCodeServer(self.folder, [str(self.program)], dict(os.environ), "/")
        await server._started()
        assert server.record is not None
        self.child = server._child
        self.pid = server.record.process.pid

    def forget_the_folder(self) -> None:
        """As an older version wrote it."""
        file = self.folder / "server.json"
        record = json.loads(file.read_text())
        del record["folder"]
        file.write_text(json.dumps(record))

    @property
    def lives(self) -> bool:
        return self.child is not None and self.child.poll() is None


@pytest.fixture
async def left(tmp_path: Path) -> AsyncIterator[Left]:
    one = Left(tmp_path / "server")
    await one.start()
    yield one
    if one.child is not None:
        one.child.kill()
        one.child.wait()


@pytest.mark.behaviour("P11")
@pytest.mark.parametrize("age", ["new", "old"])
async def test_a_copy_neither_uses_nor_ends_it(left: Left, tmp_path: Path, age: str):
    if age == "old":
        left.forget_the_folder()
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(left.folder), str(copy)], check=True)  # noqa: ASYNC221
    assert remembered(copy) is None
    await end_left(copy)
    assert left.lives

    found = remembered(left.folder)
    assert found is not None
    assert found.process.pid == left.pid
    await end_left(left.folder)
    assert not left.lives


@pytest.mark.behaviour("P4")
async def test_it_is_found_again_in_a_folder_that_was_moved(left: Left, tmp_path: Path):
    moved = left.folder.rename(tmp_path / "moved")
    assert remembered(moved) is not None
    await end_left(moved)
    assert not left.lives
