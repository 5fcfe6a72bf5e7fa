"""Claude Code that runs on after its owner was killed: it ends its turn, or asks its provider again and
again, and writes that into its transcript. A session that is resumed then takes the branch of the last line,
which is not the one that its owner knows. So a guard ends them when their owner is killed; where there was
none, or it was killed too, the next owner does so first.

Its own children end with it. Commands of Meantime do not: they outlive whoever asked for them.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

from meantime.integrations.agent_host.marked_processes import kill_all, started_with
from meantime.system import bare_python
from meantime.system.platform import inherited
from meantime.system.process import Process, process
from meantime.system.process_marks import CLAUDE, COMMAND, unmarked

GONE = 2.0  # seconds that the kernel may take to remove what was killed
GUARD = (
    f"{bare_python.BEGIN}; from meantime.integrations.orphan_guard import main; "
    "sys.exit(main(int(sys.argv[3]), *sys.argv[4:]))"
)


def owner_mark(of: str) -> dict[str, str]:
    """A variable for the environment of Claude Code. of: a session, or a conversation."""
    return {CLAUDE: f"{_owner()} {of}"}


def _owner() -> str:
    me = process(os.getpid())
    return f"{me.pid} {me.started} {me.boot} {_command(os.environ)}"


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


class Guard:
    """The process that ends the Claude Code of this one when this one is killed: see orphan_guard.py."""

    def __init__(self) -> None:
        theirs, self._lifeline = os.pipe()
        try:
            self._process = subprocess.Popen(
                [*bare_python.command(GUARD), str(theirs), CLAUDE, f"{_owner()} "],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**unmarked(os.environ), **inherited()},
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(theirs)
        self._of = os.getpid()

    @property
    def is_ours(self) -> bool:
        """Not of the process that has forked this one, and alive."""
        return self._of == os.getpid() and self._process.poll() is None

    def dismiss(self) -> None:
        """This process ends by itself."""
        if self.is_ours:
            with suppress(OSError, subprocess.TimeoutExpired):
                os.write(self._lifeline, b".")
                self._process.wait(GONE)


_starting = threading.Lock()
_guards: list[Guard] = []  # at most one


def guard_runs() -> None:
    """Starts the guard of this process, if it has none. Without one they are ended by the next owner."""
    with _starting, suppress(OSError):
        if not (_guards and _guards[0].is_ours):
            _guards[:] = [Guard()]
            atexit.register(_guards[0].dismiss)
