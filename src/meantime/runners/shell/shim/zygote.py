"""Forks shims. Small and single-threaded, so that a fork is cheap and safe.

There is always one shim to spare: it is forked and set up before it is needed, and waits for an order
at the owner's socket. When it has taken one, it says so, and we fork the next; so nobody waits for a
fork, and no two ever read at once. We live as long as our owner, and after that as long as our shims:
they share our memory.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import time

from . import cells
from .command import Shim

NUMBER = 8  # bytes of an order's number
FORKS = 50  # tries, while the machine has no process to give
PAUSE = 0.1


class Zygote:
    def __init__(self, owner: int, life: int, events: int) -> None:
        self._owner = owner
        self._life = life  # held by us alone: our owner sees when we are gone, whoever else lives on
        self._events = events
        self._shims: dict[int, bytes] = {}  # pid -> number of its order

    def serve(self) -> None:
        """Until our owner is gone; also if a spare was killed, which may have read half an order: our
        owner then starts another zygote, and gives again what was not taken."""
        while self._fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._owner)
        os.close(self._life)
        while True:
            try:
                os.wait()
            except ChildProcessError:
                return

    def _fork(self) -> bool:
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
        taken, take = os.pipe2(os.O_CLOEXEC)
        pid = self._try_to_fork()
        if pid == 0:
            os.close(taken)
            os.close(self._life)
            _live(self._owner, self._events, take)
        os.close(take)
        number = os.read(taken, NUMBER)
        os.close(taken)
        self._shims[pid] = number
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
        return bool(number)

    def _try_to_fork(self) -> int:
        for _ in range(FORKS):
            try:
                return os.fork()
            except OSError:
                time.sleep(PAUSE)
        os._exit(errno.EAGAIN)

    def reap(self, number: int, frame: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            order = self._shims.pop(pid, b"")
            if order and status != 0:
                self._reply(order, os.WEXITSTATUS(status) or errno.EIO)

    def _reply(self, order: bytes, problem: int) -> None:
        """This shim is gone before its time."""
        try:
            os.write(self._owner, order + problem.to_bytes(4, "little"))
        except OSError:
            return


def _live(owner: int, events: int, take: int) -> None:
    """Whatever happens, this fork never goes on as a zygote."""
    code = errno.EIO
    try:
        shim = Shim(owner, events, take)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
        if shim.receive():
            if shim.claim():
                shim.run()
            else:
                shim.pass_on()
        code = 0
    except OSError as problem:
        code = problem.errno or errno.EIO
    finally:
        os._exit(code)


def main(descriptor: int, life: int, root: str) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.set_inheritable(descriptor, False)
    os.set_inheritable(life, False)
    events = os.open(f"{root}/{cells.EVENTS_PIPE}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    zygote = Zygote(descriptor, life, events)
    signal.signal(signal.SIGCHLD, zygote.reap)
    gc.collect()
    gc.freeze()  # what is here now is shared by all shims; a collection would copy it
    gc.disable()
    zygote.serve()
