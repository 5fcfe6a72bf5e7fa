"""A tree of processes that will not go: they take the steps that they are given, one after the other.

    python -S -E tree.py <mark> <file> <step> …

Each that stays writes its pid into the file. All end by themselves after LIFE seconds, and no step
makes more than MANY, so that a suite that fails does not eat the machine.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial

LIFE, MANY = 300.0, 150
END = "FAULT_TREE_END"
NEW_USER, NEW_PID = 0x10000000, 0x20000000
CLONE_VFORK, SYS_CLONE, SYS_EXIT, SUBREAPER = 0x4000, 56, 60, 36  # of Linux on x86-64
LIBC = ctypes.CDLL(None)
MARK, FILE = sys.argv[1:3]
over = float(os.environ.setdefault(END, str(time.monotonic() + LIFE)))


def come_up() -> None:
    """The pid as everybody else sees it, also from inside a namespace."""
    fd = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{os.readlink('/proc/self')}\n".encode())
    os.close(fd)


def hold(up: bool = False) -> None:
    if not up:
        come_up()
    time.sleep(max(0.0, over - time.monotonic()))
    os._exit(0)


def go(steps: list[str]) -> None:
    if not steps:
        hold()
    STEPS[steps[0]](steps[1:])


def and_then(act):  # type: ignore[no-untyped-def]
    """A step that does something and goes on; what is not allowed here is left out."""

    def step(rest: list[str]) -> None:
        with suppress(OSError):
            act()
        go(rest)

    return step


def fork(rest: list[str]) -> None:
    """The parent stays, the child goes on."""
    if os.fork():
        hold()
    go(rest)


def leave(rest: list[str]) -> None:
    """The parent goes, the child goes on: twice, and it is a daemon. Not before something is up: with
    the first process the command is over, and its leftovers are killed."""
    if os.fork():
        while time.monotonic() < over and not (os.path.exists(FILE) and os.path.getsize(FILE)):
            time.sleep(0.005)
        os._exit(0)
    go(rest)


def both(rest: list[str]) -> None:
    os.fork()
    go(rest)


def vfork(rest: list[str]) -> None:
    """The parent sleeps in the kernel, where only a KILL reaches it, until its child ends."""
    come_up()
    if LIBC.syscall(SYS_CLONE, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0):
        hold(True)
    go(rest)


def thread(rest: list[str]) -> None:
    """A thread goes on; the process stays."""
    threading.Thread(target=go, args=(rest,), daemon=True).start()
    hold()


def leader(rest: list[str]) -> None:
    """A thread goes on, and the first thread ends: the process looks dead, and is not."""
    threading.Thread(target=go, args=(rest,), daemon=True).start()
    LIBC.syscall(SYS_EXIT, 0)


def anew(rest: list[str]) -> None:
    """Another program in the same process."""
    os.execve(sys.executable, [sys.executable, "-S", "-E", __file__, MARK, FILE, *rest], dict(os.environ))


def bare(rest: list[str]) -> None:
    """The same, without anything of the environment that it was given but the judge's own words."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("FAULT_")}
    os.execve(sys.executable, [sys.executable, "-S", "-E", __file__, MARK, FILE, *rest], kept)


def pool(rest: list[str]) -> None:
    import multiprocessing

    for _ in range(3):
        multiprocessing.get_context("fork").Process(target=go, args=(rest,)).start()
    hold()


def ignore() -> None:
    for number in range(1, signal.SIGRTMAX + 1):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def trap() -> None:
    """Whoever asks it to stop gets two more."""

    def more(number: int, frame: object) -> None:
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                ignore()
                hold(True)

    signal.signal(signal.SIGTERM, more)


def stop() -> None:
    come_up()
    os.kill(os.getpid(), signal.SIGSTOP)


def name() -> None:
    """One that fools whoever reads /proc/<pid>/stat by its first bracket."""
    with open("/proc/self/comm", "w") as file:
        file.write("x) Z 1 1 (")


def flood(rest: list[str], into: int = 1) -> None:
    come_up()
    while time.monotonic() < over:
        os.write(into, b"flood\n" * 1000)
    os._exit(0)


def full(rest: list[str]) -> None:
    """Writes into a pipe that nobody reads."""
    flood(rest, os.pipe()[1])


def bomb(rest: list[str]) -> None:
    """Forks without end, up to a cap."""
    come_up()
    live = 0
    while time.monotonic() < over:
        if live < MANY:
            live += 1
            if os.fork() == 0:
                go(rest) if rest else hold(True)
        while live and os.waitpid(-1, os.WNOHANG if live < MANY else 0)[0]:
            live -= 1
    os._exit(0)


def chain(rest: list[str], pause: float = 0.0) -> None:
    """Each forks its successor and goes: whoever looks for it finds the one before."""
    come_up()
    while time.monotonic() < over:
        if os.fork():
            os._exit(0)
        if rest == ["setsid"]:
            os.setsid()
        time.sleep(pause)
    os._exit(0)


def space() -> None:
    """What it forks from here on is in a pid namespace of its own, where that is allowed."""
    if LIBC.unshare(NEW_PID):
        LIBC.unshare(NEW_USER | NEW_PID)


STEPS = {
    **{step.__name__: step for step in (fork, leave, both, vfork, thread, leader, anew, bare, pool)},
    **{step.__name__: step for step in (flood, full, bomb, chain)},
    **{f"chain{ms}": partial(chain, pause=ms / 1000) for ms in (2, 20, 100)},
    **{act.__name__: and_then(act) for act in (ignore, trap, stop, name, space)},
    "setsid": and_then(os.setsid),
    "reaper": and_then(lambda: LIBC.prctl(SUBREAPER, 1, 0, 0, 0)),
    "group": and_then(lambda: os.setpgid(0, 0)),
    "close": and_then(lambda: os.closerange(0, 1024)),
    "mute": and_then(lambda: os.closerange(0, 3)),
}

if __name__ == "__main__":
    go(sys.argv[3:])
