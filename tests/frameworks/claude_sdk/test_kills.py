"""Claude Code does not go on when the process that talks with it is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime.integrations.agent_host.marked_processes import kill_all, marked
from meantime.system.process import Process
from meantime.system.process_marks import CLAUDE

from .scripted_api import ScriptedAPI

pytestmark = pytest.mark.anyio

OWNER = """
import asyncio, sys
from pathlib import Path
from claude_sdk.claude_site import options_for
from meantime import Meantime
from meantime.integrations.claude_agent_sdk import Talk

async def main():
    folder = Path(sys.argv[1])
    async with Meantime.open(folder / "talk.db") as mt:
        await Talk(options_for(folder, sys.argv[2]), mt.thread("t")).say("hello")

asyncio.run(main())
"""


def started_owner(folder: Path, api: ScriptedAPI) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", OWNER, str(folder), api.url]
    frameworks = Path(__file__).parents[1]
    env = {**os.environ, "PYTHONPATH": str(frameworks.parents[1])}  # for `tests.waiting`
    return subprocess.Popen(program, cwd=frameworks, env=env)


def runs_of(owner: int) -> list[Process]:
    return [run for run, mark in marked(CLAUDE) if mark.startswith(f"{owner} ")]


async def test_claude_code_ends_when_its_owner_is_killed_while_the_model_is_asked(
    tmp_path: Path, api: ScriptedAPI
):
    api.steps = [None]  # it is never answered
    owner = started_owner(tmp_path, api)
    try:
        await until_async(lambda: api.requests, "the model is asked")
        runs = runs_of(owner.pid)
        assert len(runs) == 1
        owner.kill()
        owner.wait()
        await until_async(lambda: not runs[0].is_alive, "the process has ended")
    finally:
        owner.kill()
        owner.wait()
        kill_all(runs_of(owner.pid))
