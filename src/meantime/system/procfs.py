"""Facts of the kernel about a process, and about this start of the machine. Loads little: `meantime mcp` asks
before its first answer."""

from __future__ import annotations

from typing import NamedTuple

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def boot() -> str:
    """Which start of the machine this is: process ids and the monotonic clock mean something within one only.
    Empty where nobody says: then nothing is known to be of the same start."""
    try:
        with open(BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


# What stands between an agent and what it starts is another process each time.
BETWEEN = frozenset({"sh", "bash", "dash", "zsh", "fish", "env", "uv", "uvx", "pipx", "npx"})


class Stat(NamedTuple):
    name: str
    state: str
    parent: int
    started: int  # in ticks since the boot


def stat(pid: int) -> Stat | None:
    """None where it is gone, or where this system shows none."""
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    end = text.rindex(")")  # a name may hold anything
    fields = text[end + 2 :].split()
    return Stat(text[text.index("(") + 1 : end], fields[0], int(fields[1]), int(fields[19]))
