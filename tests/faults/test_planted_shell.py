"""The families of commands can fail: each planted bug is reported, and without it nothing is."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until, until_async

from meantime import Meantime, Settings, Shell
from meantime.runners.shell import launcher, orphan_processes
from meantime.runners.shell.shim import cells
from meantime.runners.shell.shim_watch import ShimWatch

from . import hostile, shell_plants
from .adoption import clear, command, recover, running
from .judge import Verdict
from .strace import ROOT
from .trial import new_folder

pytestmark = pytest.mark.faults

TREES = ("fork setsid", "fork leave setsid leave", "ignore fork", "stop")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    clear(tmp_path)


def test_to_kill_the_group_alone_leaves_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "CODE", shell_plants.in_the_shims(shell_plants.GROUP_ONLY))
    monkeypatch.setattr(hostile, "PATIENCE", 0.5)
    assert "survivors" in hostile.run(1, 0, "", ("cancel",), ("fork setsid",)).problems[0]


def test_without_a_hunt_a_killed_shim_leaves_survivors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_processes, "kill_orphans", lambda *_, **__: orphan_processes.KillResult())
    monkeypatch.setattr(hostile, "PATIENCE", 0.5)
    assert "survivors" in hostile.run(1, 0, "", ("shim",), ("fork setsid",)).problems[0]


def test_without_a_plant_none_survives() -> None:
    hostile.run(1, 0, "", only=TREES).check()


def killed_and_reopened(plant: str = "") -> Verdict:
    """One owner, killed when two of its commands run."""
    folder = new_folder()
    owner = subprocess.Popen(command("load", folder, 1), cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        until(lambda: owner.poll() is not None or len(running(folder)) >= 2, "two of its commands run")
        assert owner.poll() is None
    finally:
        owner.kill()
        owner.wait()
    try:
        return recover(folder, set(), plant)
    finally:
        clear(folder)
        shutil.rmtree(folder, ignore_errors=True)


def test_without_a_plant_commands_are_found_again() -> None:
    verdict = killed_and_reopened()
    assert verdict.clean, str(verdict)


def test_to_start_again_after_a_restart_doubles() -> None:
    assert any("ran 2 times" in problem for problem in killed_and_reopened("starts_again").doubled)


def test_to_give_up_after_a_restart_loses() -> None:
    assert any("is lost" in problem for problem in killed_and_reopened("gives_up").lost)


async def ending_of_a_recycled_pid(folder: Path, innocent: int, patience: float) -> str:
    """The shim and its owner were killed, and the pid of the shim is now that of somebody else."""
    settings = Settings(stop_grace=0.2)
    async with Meantime.open(folder / "ledger.db", settings=settings) as meantime:
        await meantime.thread("t").start(Shell(f"echo $$ >{folder}/pid; sleep 600"), id="x")
        pid = folder / "pid"
        await until_async(lambda: pid.exists() and pid.read_text().endswith("\n"), "it has begun")
    (state,) = (folder / "ledger.db.commands").glob("*.state")
    with state.open("r+b") as file:
        shim = struct.unpack_from("Q", file.read(), cells.SHIM_PID * 8)[0]
        os.kill(shim, signal.SIGKILL)
        os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
        file.seek(cells.SHIM_PID * 8)
        file.write(struct.pack("Q", innocent))
    async with Meantime.open(folder / "ledger.db", settings=settings) as meantime:
        (task,) = await meantime.thread("t").wait("x", timeout=patience)
        return str(task.status)


@pytest.mark.parametrize("planted", [False, True])
def test_a_pid_alone_names_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    innocent = subprocess.Popen(["sleep", "600"])
    if planted:
        monkeypatch.setattr(ShimWatch, "is_alive", ShimWatch.is_alive)
        monkeypatch.setattr(ShimWatch, "begin", ShimWatch.begin)
        shell_plants.pid_alone()
    try:
        status = asyncio.run(ending_of_a_recycled_pid(folder, innocent.pid, 1 if planted else LIMIT))
        assert innocent.poll() is None
        assert status == ("running" if planted else "lost")
    finally:
        innocent.kill()
        innocent.wait()
