"""This process's stdin and stdout, for MCP alone: what anybody else here reads is empty, and what anybody
else prints goes to stderr. Standard library only."""

from __future__ import annotations

import fcntl
import os
import sys

FOR_AGENTS = "This is an MCP server for an agent to start; Ctrl+C ends it.\n"


class StandardStreams:
    """Both as file descriptors, and what has happened on them before the SDK was there."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.unread = b""  # was read from stdin, and nobody has answered it
        self.ended = False  # nothing comes after that
        self.unsent = b""  # the rest of an answer for which stdout had no room
        self.replay: list[bytes] = []  # lines that were answered, and that the SDK's server must know


_own: list[StandardStreams] = []  # there is one pair for each process


def own_streams() -> StandardStreams:
    """Taken aside with the first call; later calls give the same."""
    if not _own:
        open_closed()
        _own.append(StandardStreams(_aside(0), _aside(1)))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
    return _own[0]


def tell_person() -> None:
    """Somebody who starts it at a terminal sees no prompt, and no answer."""
    if os.isatty(0):
        sys.stderr.write(FOR_AGENTS)
        sys.stderr.flush()


def open_closed() -> None:
    """A stream that was closed for us is as good as /dev/null. Otherwise the next file that is opened gets
    its number, and is taken for it."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: this one


def _aside(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
