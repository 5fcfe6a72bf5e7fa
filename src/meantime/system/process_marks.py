"""Variables by which processes are found again, long after whoever started them is gone.

A process inherits the variables of the one that started it, and may be meant by none of them. So what
Meantime starts gets its own mark, and no other's.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to load `typing` takes 2 ms, and a zygote loads this file
if TYPE_CHECKING:
    from collections.abc import Mapping

COMMAND = "MEANTIME_COMMAND"  # of every command: whose it is, should its shim be killed
CLAUDE = "MEANTIME_CLAUDE_OF"  # of Claude Code: whose it is, should its owner be killed


def unmarked(environment: Mapping[str, str]) -> dict[str, str]:
    """For a program that does not end with the Claude Code from inside which it was asked for."""
    return {name: value for name, value in environment.items() if name != CLAUDE}
