"""When a shim was killed, its command has nobody left: it is found by the mark in its environment."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

from .shim import cells, tree

ROUNDS = 50
PAUSE = 0.02
LOOKS = 5  # at a process that shows no environment
MOMENT = 0.002  # seconds between them
PF_KTHREAD = 0x00200000  # in the flags of /proc/<pid>/stat


def hunt(base: Path, pid: int, started: int, shim: tuple[int, int] = (0, 0)) -> tuple[int, list[int]]:
    """Kills the command, everything that carries its mark and all that is below these; with a shim that
    lives, also all that is below it. Says how many there were, and which are left."""
    met: tree.Found = {}
    found: tree.Found = {}
    for _ in range(ROUNDS):
        found = tree.kill_all(partial(_found, base, pid, started, met, shim))
        if not found:
            break
        met |= found
        time.sleep(PAUSE)  # the kernel takes them down in its own time
    return len(met), sorted(found)


def _found(base: Path, pid: int, started: int, met: tree.Found, shim: tuple[int, int]) -> tree.Found:
    """The mark alone would not do: a process can change its environment, the command itself too, and
    has none for a moment while it becomes another program."""
    roots = marked(base)
    if shim[0] and tree.start_time(shim[0]) == shim[1]:
        roots |= tree.descendants(shim[0])
    for known, at in ((pid, started), *((each, at) for each, (at, _) in met.items())):
        fields = tree.stat(known)
        if fields is not None and int(fields[19]) == at and not tree.is_gone(fields):
            roots[known] = (at, int(fields[2]))
    below = [tree.descendants(root) for root in roots]
    return {each: at for found in (roots, *below) for each, at in found.items() if each != os.getpid()}


def marked(base: Path) -> tree.Found:
    """Living processes that were started with the mark of this command."""
    mark = os.fsencode(f"{cells.MARK}={base}")
    found: tree.Found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid() and mark in _environment(entry):
            fields = tree.stat(int(entry))
            if fields is not None and not tree.is_gone(fields):
                found[int(entry)] = (int(fields[19]), int(fields[2]))
    return found


def _environment(pid: str) -> list[bytes]:
    """Of a process; or of its other threads, where its first one has ended. One that is just becoming
    another program has none for a moment: then it is looked at again."""
    for _ in range(LOOKS):
        text = _read(f"/proc/{pid}/environ")
        if text == b"":
            text = _of_other_threads(pid)
        if text or text is None or _is_kernels(int(pid)):
            return (text or b"").split(b"\0")
        time.sleep(MOMENT)
    return []


def _of_other_threads(pid: str) -> bytes:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return b""
    return b"".join(_read(f"/proc/{pid}/task/{thread}/environ") or b"" for thread in threads if thread != pid)


def _is_kernels(pid: int) -> bool:
    """No program: a thread of the kernel's, or gone."""
    fields = tree.stat(pid)
    return fields is None or tree.is_gone(fields) or bool(int(fields[6]) & PF_KTHREAD)


def _read(path: str) -> bytes | None:
    """None for one that is gone, or somebody else's."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def put_down(pid: int, started: int) -> None:
    """A shim that does not answer any more."""
    tree.send(pid, started, signal.SIGKILL)
