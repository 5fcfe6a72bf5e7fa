"""stdout and stderr: writing to them, and what becomes of a stream that nobody reads."""

from __future__ import annotations

import os
import sys


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints at once, to stderr if `err`; without a new line at the end if not `nl`."""
    stream = sys.stderr if err else sys.stdout
    stream.write(f"{text}\n" if nl else text)
    stream.flush()


def open_streams() -> None:
    """A stream that was closed for us is as good as /dev/null; what a terminal cannot show is a `?`. A locale
    of ASCII is a locale that nobody has set."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        encoding = "utf-8" if stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else None
        stream.reconfigure(encoding=encoding, errors="replace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def let_go_of_stdout() -> None:
    """Nobody reads it any more: otherwise the interpreter complains about it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
