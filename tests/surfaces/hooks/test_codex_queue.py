"""The process that waits for an idle Codex. A shell named codex stands for it, whose `queue` is a script."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE = 30.0
HOOK = """
import os, sys, time
from meantime.surfaces.hooks import codex_queue

def waited(is_wanted):
    open("waiting", "w").write(str(os.getpid()))
    while is_wanted():
        if os.path.exists("gate"):
            return "work has ended"
        time.sleep(0.02)
    return ""

sys.exit(codex_queue.wake_later("session-1", waited))
"""
QUEUE = 'printf "%s|" "$@" > queued.part; mv queued.part queued\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(os.path.realpath("/bin/sh"), tmp_path / "codex")
    (tmp_path / "hook.py").write_text(HOOK)
    (tmp_path / "queue").write_text(QUEUE)
    return tmp_path


def codex(folder: Path) -> subprocess.Popen[str]:
    """It runs the hook, reads all that the hook prints, and then is idle."""
    turn = f'said=$({sys.executable} hook.py); echo "the hook said: $said"; read line'
    return subprocess.Popen(
        [folder / "codex", "-c", turn], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def until(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, f"{what} took too long"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_the_hook_returns_at_once_and_its_codex_is_woken_later(folder: Path):
    with codex(folder) as one:
        assert one.stdout
        assert one.stdin
        assert one.stdout.readline() == "the hook said: \n"  # with the pipe closed, while somebody waits
        until((folder / "waiting").exists, "the wait")
        assert not (folder / "queued").exists()
        (folder / "gate").touch()
        until((folder / "queued").exists, "the queue")
        assert (folder / "queued").read_text() == "--thread|session-1|--message|work has ended|"
        pid = int((folder / "waiting").read_text())
        until(lambda: not is_running(pid), "the end of the wait")
        one.stdin.close()


def test_the_wait_ends_with_its_codex_and_queues_nothing(folder: Path):
    with codex(folder) as one:
        until(lambda: (folder / "waiting").exists() and bool((folder / "waiting").read_text()), "the wait")
        pid = int((folder / "waiting").read_text())
        one.send_signal(signal.SIGKILL)
    until(lambda: not is_running(pid), "the end of the wait")
    (folder / "gate").touch()
    assert not (folder / "queued").exists()


def test_a_hook_that_no_codex_runs_leaves_nobody_behind(folder: Path):
    done = subprocess.run([sys.executable, "hook.py"], cwd=folder, timeout=PATIENCE, check=False)
    assert done.returncode == 0
    assert not (folder / "waiting").exists()
