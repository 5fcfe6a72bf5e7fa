"""When a shim was killed, its command has nobody left: it is found by the mark in its environment."""

from __future__ import annotations

import os
import signal
import time

from .shim import cells, tree

ROUNDS = 50
PAUSE = 0.02


def hunt(name: str) -> tuple[int, list[int]]:
    """Kills everything that carries the mark. Says how many there were, and which are left."""
    met: set[int] = set()
    found: dict[int, int] = {}
    for _ in range(ROUNDS):
        found = marked(name)
        if not found:
            break
        met |= set(found)
        for pid, started in found.items():
            tree.send(pid, started, signal.SIGKILL)
        time.sleep(PAUSE)  # the kernel takes them down in its own time
    return len(met), sorted(found)


def marked(name: str) -> dict[int, int]:
    """Living processes that were started with the mark of this command, with their start times."""
    mark = f"{cells.MARK}={name}".encode()
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                if mark not in file.read().split(b"\0"):
                    continue
        except OSError:
            continue
        fields = tree.stat(int(entry))
        if fields is not None and fields[0] not in (b"Z", b"X"):
            found[int(entry)] = int(fields[19])
    return found


def put_down(pid: int, started: int) -> None:
    """A shim that does not answer any more."""
    tree.send(pid, started, signal.SIGKILL)
