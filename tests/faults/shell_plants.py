"""Bugs in the handling of commands, planted from outside. `python -m tests.faults.owner … <name>` has one."""

from __future__ import annotations

import os
from typing import Any

from meantime.runners.shell import launcher, orphan_processes
from meantime.runners.shell.command_start import CommandStart
from meantime.runners.shell.shim import cells
from meantime.runners.shell.shim_watch import End, ShimWatch
from meantime.system.platform import ProcessHandle

_BEGIN = "from meantime.runners.shell.shim.zygote import main"


def in_the_shims(code: str) -> str:
    """The program of a zygote, with a bug that it and its shims have from the beginning."""
    return (
        f"exec({launcher.CODE.partition(_BEGIN)[0] + code!r}); {_BEGIN}{launcher.CODE.partition(_BEGIN)[2]}"
    )


GROUP_ONLY = """
import os, signal
from meantime.runners.shell.shim import process_tree as tree
def strike(of, number):
    for pid, (_, group) in tree.descendants(of).items():
        if pid == group and tree.facts(pid)[0] == of and os.getsid(pid) == group:
            first.append(pid)
    try: os.killpg(first[0], number)
    except (OSError, IndexError): pass
first = []
tree.terminate = lambda of: strike(of, signal.SIGTERM)
tree.kill = lambda of: strike(of, signal.SIGKILL) or {}
tree.alone = lambda: True
"""


def no_hunt() -> None:
    """When a shim is gone, its command is believed to be gone, too."""
    orphan_processes.kill_orphans = lambda *args: (0, [])  # type: ignore[assignment]


def starts_again() -> None:
    """After a restart what ran is started again, under the same name."""

    async def attend(self: CommandStart, watch: ShimWatch, assignment: Any, **how: Any) -> None:
        if assignment.again:
            path = f"{watch.base}{cells.STATE_FILE}"
            os.unlink(path)
            fresh = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.truncate(fresh, cells.SIZE)
            os.dup2(fresh, watch._state)
            os.close(fresh)
        await real(self, watch, assignment, **how)

    real = CommandStart.attend
    CommandStart.attend = attend  # type: ignore[method-assign]


def gives_up() -> None:
    """After a restart what ran is lost, though it goes on."""

    async def attend(self: CommandStart, watch: ShimWatch, assignment: Any, **how: Any) -> None:
        if assignment.again:
            watch.lose("It ran when its owner was killed.")
        else:
            await real(self, watch, assignment, **how)

    real = CommandStart.attend
    CommandStart.attend = attend  # type: ignore[method-assign]


def pid_alone() -> None:
    """A shim lives if something has its pid."""

    def begin(self: ShimWatch) -> None:
        state = self.look()
        assert state is not None
        self._held = ProcessHandle(state[cells.SHIM_PID])
        self._held.on_exit(self._loop, lambda: self.finish(End.GONE))
        self._resolve(self.begun)

    ShimWatch.is_alive = lambda self: _exists((self.look() or [0] * 9)[cells.SHIM_PID])  # type: ignore
    ShimWatch.begin = begin  # type: ignore[method-assign]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
