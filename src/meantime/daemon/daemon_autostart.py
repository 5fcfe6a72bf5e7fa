"""The daemon of a home, started when it is needed. Standard library only: the command line waits for this."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from meantime.system.process_marks import unmarked

from .home import BadHome, Home, reach

ASKED = b"GET /v1/health HTTP/1.1\r\nHost: meantime\r\nConnection: close\r\n\r\n"
PAUSE = 0.02  # seconds between two looks
DIED = 3  # exit code of the front: the daemon was killed before it could say anything
TRIES = 3
LAST_WORDS = 2_000  # bytes at the end of the log in which the reason is looked for


class NoDaemon(Exception):
    """There is none, and none could be started. `message` says why, `hint` what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message = message
        self.hint = hint


def ensure(home: Home, *, wait: float = 15.0) -> None:
    """Returns when the daemon of this home answers, and starts it if there is none.

    Any number of processes may ask at once: one starts it, the others wait for that.
    """
    until = time.monotonic() + wait
    log_before, owner_before = _log_size(home), 0
    try:
        home.check()
        if answers(home, wait):
            return
        home.make()
        owner_before = _owner(home)
        tries, lives = 0, False
        while time.monotonic() < until and tries < TRIES:
            with _turn(home.folder / "starting.lock") as is_ours:
                if answers(home, until - time.monotonic()):
                    return
                if is_ours:
                    code = _start(home, until, log_before)
                    tries, lives = tries + (code == DIED), code is None
            time.sleep(PAUSE)
    except BadHome as problem:
        raise NoDaemon(problem.message, problem.hint) from problem
    except OSError as problem:
        raise NoDaemon(
            f"The daemon cannot be started in {home.folder}: {problem.strerror or problem}.",
            "Set MEANTIME_HOME to a folder that you may write to.",
        ) from problem
    words = _last_words(home, log_before)
    pid = _owner(home)
    if lives and (pid == 0 or pid != owner_before):  # otherwise it waits for an owner that hangs
        named = f" (pid {pid})" if pid else ""
        raise NoDaemon(
            f"The daemon is still starting{named}: it did not answer within {wait:g} seconds.{words}",
            f"Try again in a moment, or look into {home.log}.",
        )
    what = "is killed whenever it starts" if tries == TRIES else f"did not answer within {wait:g} seconds"
    raise NoDaemon(
        f"The daemon {what}.{words}",
        f"Look into {home.log}, or ask `meantime doctor`.",
    )


def answers(home: Home, wait: float = 5.0) -> bool:
    """Whether somebody serves this home. A daemon that is slow to answer is one, too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(max(wait, PAUSE))
        try:
            reach(talk, home.http_socket)
            talk.sendall(ASKED)
            return talk.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


@contextmanager
def _turn(path: Path) -> Generator[bool]:
    """Whether it is ours to start the daemon. The kernel gives a turn back whose process was killed."""
    place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(place)


def _owner(home: Home) -> int:
    """The process that has the ledger; 0 for none."""
    from meantime.system.platform import lock_holder  # the hot path does without it

    return lock_holder(f"{home.ledger}.lock")


def _start(home: Home, until: float, log_before: int) -> int | None:
    """The program that is started here goes away when the daemon answers, or says why there is none. Returns
    its exit code; DIED is worth another try. None: the daemon lives, and has not answered yet."""
    import subprocess  # the hot path does without it

    if not sys.executable:
        raise NoDaemon("This Python does not know its own program.", "Start `meantime up` yourself.")
    # -P: a file in the current folder must not take the place of a module of the daemon.
    program = [sys.executable, "-P", "-m", "meantime.app.daemon"]
    own = {"MEANTIME_HOME": str(home.folder), "MEANTIME_CONFIG": str(home.config)}
    environ = {**unmarked(os.environ), **own}
    with subprocess.Popen(
        program,
        env=environ,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl+C here is not meant for it
    ) as front:
        try:
            said = front.communicate(timeout=max(until - time.monotonic(), PAUSE))[1]
        except subprocess.TimeoutExpired:
            front.kill()  # the daemon itself may still come up; the next call finds it
            return None
        if front.returncode not in (0, DIED):
            lines = said.decode("utf-8", "replace").strip().splitlines() or ["The daemon did not start."]
            message, hint = lines[-2:] if len(lines) > 1 else (lines[-1] + _last_words(home, log_before), "")
            raise NoDaemon(message, hint or f"Look into {home.log}, or ask `meantime doctor`.")
        return front.returncode


def _log_size(home: Home) -> int:
    try:
        return os.stat(home.log).st_size
    except OSError:
        return 0


def _last_words(home: Home, before: int) -> str:
    """The last line of the log, unless it was there `before`: an earlier daemon wrote it then."""
    try:
        with open(home.log, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            since = before if before <= size else 0  # a log that has become shorter was begun anew
            file.seek(max(since, size - LAST_WORDS))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return f" The log ends with: {lines[-1].strip()}" if lines else ""
