"""Codex is woken when it is idle, by a message in its queue: `codex queue`, which Codex 0.166 has.

Codex waits for its hooks, so the one that waits for the end of work leaves a process behind, which waits in
its place, and goes when its Codex does. The message itself tells nothing: Codex takes it as a prompt, and the
hook of that prompt tells what is unread.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from meantime.system.process import Process

DEPTH = 10  # processes above us that are looked at
PATIENCE = 30.0  # seconds for `codex queue`: the machine may be busy


def wake_later(session: str, waited: Callable[[Callable[[], bool]], str]) -> int:
    """Returns at once, with the exit code of the hook.

    session: of Codex.
    waited: gives the message when it is time. Its argument says whether Codex is still there.
    """
    codex = _codex()
    if codex is None or os.fork():
        return 0
    code = 1  # in the process that is left behind: whatever happens, it does not return to its caller
    try:
        _detach()
        text = waited(lambda: codex.is_alive)
        if text and codex.is_alive:
            _queue(codex, session, text)
        code = 0
    finally:
        os._exit(code)


def _codex() -> Process | None:
    """The Codex that runs this hook; its shell may stand in between."""
    from meantime.system.platform import program, stat
    from meantime.system.process import process

    pid = os.getppid()
    for _ in range(DEPTH):
        found = stat(pid)
        if found is None or pid <= 1:
            return None
        if os.path.basename(program(pid)) == "codex":
            return process(pid)
        pid = found.parent
    return None


def _detach() -> None:
    """Codex reads what its hooks print until nobody can print any more."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)


def _queue(codex: Process, session: str, text: str) -> None:
    """A Codex without this command is not woken: it is told with the next prompt."""
    import subprocess

    from meantime.system.platform import program

    words = [program(codex.pid), "queue", "--thread", session, "--message", text]
    subprocess.run(words, stdin=subprocess.DEVNULL, timeout=PATIENCE, check=False)
