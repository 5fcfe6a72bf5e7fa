"""Facts of the kernel about a process, and about this start of the machine. Loads little: `meantime mcp` asks
before its first answer."""

from __future__ import annotations

from typing import NamedTuple

BOOT_ID = "/proc/sys/kernel/random/boot_id"
SHORTEST = 12  # digits of a start's name: no two of one machine begin with the same


def boot() -> str:
    """Which start of the machine this is: process ids and the monotonic clock mean something within one only.
    Empty where nobody says: then nothing is known to be of the same start."""
    try:
        with open(BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


def is_this_boot(id: str) -> bool:
    """Whether `id`, or a beginning of it that `short_boot` gave, names this start of the machine."""
    return len(_plain(id)) >= SHORTEST and _plain(boot()).startswith(_plain(id))


def short_boot(digits: int) -> str:
    """The beginning of this start's name, where there is little room; empty where nobody says."""
    return _plain(boot())[:digits]


def _plain(id: str) -> str:
    return id.strip().replace("-", "")


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
