"""daemon.log: what the daemon says, and what anything in it prints. Private, and bounded."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path

MOST = 1_000_000  # bytes, after which it begins anew; the one before is kept beside it
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
LINE = "%(asctime)s %(levelname)s %(message)s"


class Logbook(logging.Handler):
    """Stdout and stderr of this process go there, too: a fault in C code has no other place to speak."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(LINE))
        self._path = path
        self.turns = False  # until we are the leader, the file is another's
        self._open()

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a full disk must not stop the work
            os.write(2, f"{self.format(record)}\n".encode("utf-8", "replace"))
        self.turn()

    def turn(self) -> None:
        """To a new page, if this one is full: also with what was printed, and not logged."""
        with contextlib.suppress(OSError):
            if self.turns and os.fstat(2).st_size > MOST:
                os.replace(self._path, self._path.with_suffix(".log.1"))
                self._open()

    def _open(self) -> None:
        place = os.open(self._path, _OPEN, 0o600)
        os.dup2(place, 1)
        os.dup2(place, 2)
        os.close(place)


def to_stderr() -> logging.Handler:
    """For a service manager, which keeps logs itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    return handler


def begin(handler: logging.Handler) -> None:
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("meantime").setLevel(logging.INFO)
