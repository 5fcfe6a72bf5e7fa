"""Forks shims. Small and single-threaded, so that a fork is cheap and safe.

There is always one shim to spare: it is forked and set up before it is needed, and waits for an order
at the owner's socket. It passes the baton on when its command runs, or is over, and only then the next
is forked: so nobody waits for a fork, no two ever read at once, and a fork does not take the processor
from a command that is just being started. We live as long as our owner, and after that as long as our
shims: they share our memory.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import time

from . import cells
from .intake import Intake
from .shim import Shim

FORKS = 50  # tries, while the machine has no process to give
PAUSE = 0.1


def serve(orders: int, lifeline: int, events: int) -> None:
    """Until our owner is gone, or a spare was killed, which may have read half an order: our owner then
    starts another zygote, and gives again what was not begun.
    """
    while _fork(orders, lifeline, events):
        continue
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for fd in (orders, lifeline, events):
        os.close(fd)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _fork(orders: int, lifeline: int, events: int) -> bool:
    taken, baton = os.pipe()
    if _try_to_fork() == 0:
        os.close(taken)
        _live(orders, lifeline, events, baton)
    os.close(baton)
    passed = os.read(taken, 1)
    os.close(taken)
    return bool(passed)


def _try_to_fork() -> int:
    for _ in range(FORKS):
        try:
            return os.fork()
        except OSError:
            time.sleep(PAUSE)  # no process to be had just now; the order waits in its socket
    os._exit(errno.EAGAIN)


def _live(orders: int, lifeline: int, events: int, baton: int) -> None:
    """This fork never goes on as a zygote, whatever happens."""
    try:
        shim, intake = Shim(lifeline, events, baton), Intake(orders)
        if intake.receive():
            try:
                shim.carry_out(intake)
            except OSError:
                shim.give_up()
    finally:
        os._exit(0)


def _reap(number: int, frame: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def main(orders: int, lifeline: int, root: str) -> None:
    if os.fork():
        os._exit(0)
    os.setsid()
    os.dup2(0, 2)  # nobody reads any more what goes wrong; and whoever started us waits for the end of it
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # who started us may have blocked what wakes us
    for fd in (orders, lifeline):
        os.set_inheritable(fd, False)
    events = os.open(f"{root}/{cells.EVENTS_PIPE}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    gc.collect()
    gc.freeze()  # what is here now is shared by all shims; a collection would copy it
    gc.disable()
    serve(orders, lifeline, events)
