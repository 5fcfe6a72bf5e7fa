"""The other half of family 7: kill -9 at system calls around the start of commands. The owner and whoever
it starts are traced: one of them is killed. A command is started once at most, and its end is told once."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

from tests.waiting import until

from . import strace
from .adoption import clear, command, recover
from .judge import Tally
from .strace import Point
from .trees import lives
from .trial import new_folder, sample, side_by_side, trial

SYSCALLS = (
    "sendto", "recvfrom", "openat", "fdatasync", "write", "pwrite64", "mknodat", "pipe2", "flock", "mmap",
    "vfork", "clone3", "poll", "wait4",
)  # fmt: skip


def sweep(seed: int, count: int, reproduce: str) -> Tally:
    tally = Tally("kill -9 at system calls of a command's start", reproduce)
    folder = new_folder()
    try:
        found = strace.points("story", folder, SYSCALLS, "owner")
    finally:
        clear(folder)
        shutil.rmtree(folder)
    side_by_side(sample(found, count, random.Random(seed)), lambda point: _kill(tally, point))
    return tally


def _kill(tally: Tally, point: Point) -> None:
    def make(folder: Path) -> int:
        _live_until(point, folder)
        return int("killed by SIGKILL" in (folder / "trace").read_text())

    trial(tally, f"killed at {point}", make, recover, clear)


def _live_until(point: Point, folder: Path) -> None:
    """strace stays with the commands that outlive their owner: it is sent away when that is gone."""
    options = ["-f", *strace.killing(folder / "trace", point)]
    tracer = subprocess.Popen(
        ["strace", *options, *command("story", folder)], cwd=strace.ROOT, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(lambda: tracer.poll() is not None or _is_over(folder), "the owner is over", limit=strace.OVER)
    finally:
        tracer.kill()  # those it traces go on
        tracer.wait()


def _is_over(folder: Path) -> bool:
    born = folder / "life.0"
    words = born.read_text() if born.exists() else ""
    return bool(words) and not lives(int(words))
