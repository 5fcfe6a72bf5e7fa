"""Programs that an integration starts as commands of its own, beside the tasks (ports/commands.py)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, stays_async

from meantime.ports.commands import Command
from meantime.runners.shell import orphan_processes
from meantime.runners.shell.lasting_commands import LastingCommands
from meantime.runners.shell.runner import ShellRunner
from meantime.system.process_marks import CLAUDE

pytestmark = pytest.mark.anyio
# It ends when it is interrupted, and leaves a process that is not.
LEAVES = "(trap '' INT; echo; exec sleep 300 >/dev/null 2>&1) & trap 'exit 0' INT; wait"


@pytest.mark.behaviour("P8")
async def test_a_second_stop_does_not_hurry_past_the_processes_that_are_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    looking, go_on = threading.Event(), threading.Event()
    kill = orphan_processes.kill_orphans
    killed: list[int] = []

    def slow(*given: Any, **more: Any) -> Any:
        looking.set()
        assert go_on.wait(LIMIT)
        found = kill(*given, **more)
        killed.append(found.killed)
        return found

    runner = ShellRunner(tmp_path / "commands", grace=LIMIT)
    commands = LastingCommands(runner)
    commands.open()
    try:
        commands.prepare("one")
        command = Command(("sh", "-c", LEAVES), str(tmp_path), {}, b"", "keep")
        program = commands.follow("one", command)
        async for piece in program.stdout():
            assert piece.data
            break
        monkeypatch.setattr(orphan_processes, "kill_orphans", slow)
        stopping = asyncio.create_task(program.stop())
        assert await asyncio.to_thread(looking.wait, LIMIT)
        for _ in range(2):
            stopping.cancel()
            await stays_async(lambda: not stopping.done(), "the stop goes on", 0.05)
        go_on.set()
        await asyncio.wait_for(asyncio.shield(stopping), LIMIT)
    finally:
        go_on.set()
        await commands.close()
    assert killed == [1]


@pytest.mark.behaviour("P4")
async def test_no_program_has_the_mark_of_the_claude_code_that_asked_for_it(tmp_path: Path):
    commands = LastingCommands(ShellRunner(tmp_path / "commands", grace=0.5))
    commands.open()
    try:
        commands.prepare("one")
        env = {CLAUDE: "1 2 boot 0 t", "OTHER": "is kept"}
        program = commands.follow("one", Command(("/usr/bin/env",), str(tmp_path), env))
        said = b"".join([piece.data async for piece in program.stdout()]).decode()
        await program.ending()
    finally:
        await commands.close()
    assert "OTHER=is kept" in said
    assert CLAUDE not in said
