"""Runs a victim under strace, which kills it or fails its disk at a system call of our choice."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.waiting import LIMIT

ROOT = Path(__file__).parents[2]
SYSCALLS = (
    "write", "pwrite64", "fdatasync", "fsync", "openat", "ftruncate", "unlink", "fallocate", "close",
    "flock", "pread64",
)  # fmt: skip
OVER = 4 * LIMIT  # the victim's own watchdog is shorter
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")


class Point(NamedTuple):
    """The Nth call of one kind by one thread; strace counts per thread, as we do."""

    syscall: str
    number: int

    def __str__(self) -> str:
        return f"{self.syscall} #{self.number}"


class Ended(NamedTuple):
    code: int
    output: str

    @property
    def killed(self) -> bool:
        return self.code in (-9, 137)


def missing() -> str:
    """Why strace cannot be used here, or the empty string. Under CI=true that is a failure."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    probe = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, text=True)
    return "" if probe.returncode == 0 else f"strace does not work here: {probe.stderr.strip()[-200:]}"


def is_ci() -> bool:
    return os.environ.get("CI", "").lower() == "true"


def command(mode: str, folder: Path, seed: int = 0, program: str = "victim") -> list[str]:
    return [sys.executable, "-m", f"tests.faults.{program}", mode, str(folder), str(seed)]


def run(mode: str, folder: Path, *options: str, seed: int = 0, program: str = "victim") -> Ended:
    strace = ["strace", "-f", *options] if options else []
    line = [*strace, *command(mode, folder, seed, program)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=OVER)
    return Ended(done.returncode, (done.stdout + done.stderr)[-3_000:])


def kill_at(point: Point, mode: str, folder: Path, *more: str, program: str = "victim") -> Ended:
    return run(mode, folder, *killing(folder / "trace", point), *more, program=program)


def points(
    mode: str,
    folder: Path,
    syscalls: tuple[str, ...] = SYSCALLS,
    program: str = "victim",
    more: Sequence[str] = (),
) -> list[Point]:
    """Every system call that the victim makes once it has begun, from a run that nobody disturbs."""
    trace = folder / "trace"
    ended = run(mode, folder, *tracing(trace, syscalls), *more, program=program)
    assert ended.code == 0, ended.output
    return points_of(trace)


def tracing(trace: Path, syscalls: tuple[str, ...] = SYSCALLS) -> list[str]:
    return ["-o", str(trace), "-e", f"trace={','.join(syscalls)}"]


def killing(trace: Path, point: Point) -> list[str]:
    inject = f"inject={point.syscall}:signal=KILL:when={point.number}"
    return ["-o", str(trace), "-e", f"trace={point.syscall}", "-e", inject]


def points_of(trace: Path) -> list[Point]:
    """Once the victim has said that it begins."""
    counts: Counter[tuple[str, str]] = Counter()
    before: Counter[str] = Counter()
    found: dict[Point, None] = {}
    begun = False
    for line in trace.read_text().splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        thread, syscall, rest = match.groups()
        counts[thread, syscall] += 1
        begun = begun or rest.startswith('1, "begin')
        if not begun:
            before[syscall] = max(before[syscall], counts[thread, syscall])
        elif counts[thread, syscall] > before[syscall]:  # else it would hit Python's own start
            found[Point(syscall, counts[thread, syscall])] = None
    return list(found)
