"""The kernel's facts about a process. Loads little: `meantime mcp` asks before its first answer."""

from __future__ import annotations

from typing import NamedTuple

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
