"""The process that waits for an idle Codex. A shell named codex stands for it, whose `queue` is a script."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

ROOT = Path(__file__).parents[3]
HOOK = """
import os, sys
from meantime.surfaces.hooks import codex_queue
from tests.waiting import until

def waited(is_wanted):
    open("waiting", "w").write(str(os.getpid()))
    until(lambda: not is_wanted() or os.path.exists("gate"), "the gate opens")
    return "work has ended" if is_wanted() else ""

sys.exit(codex_queue.wake_later("session-1", waited))
"""
QUEUE = 'printf "%s|" "$@" > queued.part; mv queued.part queued\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
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


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_the_hook_returns_at_once_and_its_codex_is_woken_later(folder: Path):
    with codex(folder) as one:
        assert one.stdout
        assert one.stdin
        assert one.stdout.readline() == "the hook said: \n"  # with the pipe closed, while somebody waits
        until((folder / "waiting").exists, "the hook waits")
        assert not (folder / "queued").exists()
        (folder / "gate").touch()
        until((folder / "queued").exists, "a prompt is queued")
        assert (folder / "queued").read_text() == "--thread|session-1|--message|work has ended|"
        pid = int((folder / "waiting").read_text())
        until(lambda: not is_running(pid), "the wait is over")
        one.stdin.close()


def test_the_wait_ends_with_its_codex_and_queues_nothing(folder: Path):
    with codex(folder) as one:
        waiting = folder / "waiting"
        pid = int(until(lambda: waiting.exists() and waiting.read_text(), "the hook waits"))
        one.send_signal(signal.SIGKILL)
    until(lambda: not is_running(pid), "the wait is over")
    (folder / "gate").touch()
    assert not (folder / "queued").exists()


def test_a_hook_that_no_codex_runs_leaves_nobody_behind(folder: Path):
    done = subprocess.run([sys.executable, "hook.py"], cwd=folder, timeout=LIMIT, check=False)
    assert done.returncode == 0
    assert not (folder / "waiting").exists()
