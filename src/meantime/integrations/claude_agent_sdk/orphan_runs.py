"""Claude Code that runs on after its owner was killed: it ends its turn, or asks its provider again and
again, and writes that into its transcript. A session that is resumed then takes the branch of the last line,
which is not the one that its owner knows. So they are ended first.

Its own children end with it. Commands of Meantime do not: they outlive whoever asked for them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping

from meantime.integrations.agent_host.marked_processes import kill_all, started_with
from meantime.system.process import Process, process
from meantime.system.process_marks import CLAUDE, COMMAND

GONE = 2.0  # seconds that the kernel may take to remove what was killed


def owner_mark(of: str) -> dict[str, str]:
    """A variable for the environment of Claude Code. of: a session, or a conversation."""
    me = process(os.getpid())
    return {CLAUDE: f"{me.pid} {me.started} {me.boot} {_command(os.environ)} {of}"}


def end_orphans(of: str) -> None:
    """Ends those whose owner is gone. Returns when they are. Blocks."""
    found = [run for run, variables in started_with(CLAUDE) if _is_orphan(variables, of)]
    kill_all(found)
    until = time.monotonic() + GONE
    while any(run.is_alive for run in found) and time.monotonic() < until:
        time.sleep(0.005)


def _is_orphan(variables: Mapping[str, str], of: str) -> bool:
    """Anybody can write a mark: one that says nothing is nobody's."""
    try:
        pid, started, boot, command, name = variables[CLAUDE].split(" ", 4)
        owner = Process(int(pid), int(started), boot)
    except ValueError:
        return False
    return name == of and command == _command(variables) and not owner.is_alive


def _command(variables: Mapping[str, str]) -> str:
    """The command of Meantime to which a process belongs. That of Claude Code is its owner's, if it has one;
    a command that was started from inside has another."""
    return hashlib.sha256(os.fsencode(variables.get(COMMAND, ""))).hexdigest()[:16]
