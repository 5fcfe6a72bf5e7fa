"""Processes of namespaces, seen and entered from outside by the pid of their process 1."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import LIMIT, until


def can_unshare(*kinds: str) -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", *kinds, "true"], capture_output=True, check=False).returncode == 0


@contextmanager
def first_process(
    command: list[str], environ: dict[str, str] | None = None
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A command that is process 1 of new namespaces, as `unshare …` starts it: its pid here, and the parent
    that ends with its exit code. Everything inside is killed in the end."""
    outer = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL)
    try:
        yield until(lambda: children(outer.pid), "the first process is there")[0], outer
    finally:
        outer.kill()
        outer.wait(LIMIT)


def children(pid: int, states: str = "RSDTZ") -> list[int]:
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] in states:
            found.append(int(entry))
    return found


def entered(first: int, root: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command beside process 1, with its root file system."""
    enter = ["nsenter", f"--target={first}", "--mount", "--pid", "--uts", "--ipc", "chroot", str(root)]
    return subprocess.run(
        [*enter, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * LIMIT,
        check=False,
    )  # fmt: skip
