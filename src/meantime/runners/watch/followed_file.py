"""A file whose new lines are read, as `tail -F` follows it: over its end, a cut, and a file in its place.

Every call here may block for as long as the file system likes: none is made on the event loop.
"""

from __future__ import annotations

import os
import stat
import zlib
from typing import NamedTuple

from meantime.kernel.line_blocks import LineBlocks
from meantime.kernel.model import Json

PIECE = 1 << 18  # bytes that are read at once
MARKED = 256  # bytes before a cursor that tell one file from another


class Lines(NamedTuple):
    """Whole lines that are new."""

    block: bytes
    searched: int  # the offset behind them
    state: list[int]  # the file, as a cursor knows it again
    more: bool  # there may be more at once


class CannotRead(Exception):
    """It is there and cannot be read, which may pass."""


class NoLines(CannotRead):
    """It is not a file that has lines, such as a pipe or a folder."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not a regular file, so it has no lines to follow.")


class FollowedFile:
    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._lines = LineBlocks(0)
        self._file: list[int] = []
        self._mark: list[int] = []  # of what was read last
        self._is_at_rest = False  # all was read, up to the mark
        self.device: int | None = None  # where it is, or will be

    def begin(self, at: int, state: Json, *, at_end: bool) -> tuple[int, list[int]] | None:
        """A file that is there is searched from the cursor, if that is of this file, otherwise from its
        beginning; or from its end, and then this is where that is. A path without lines counts as
        one that is not there.

        Raises:
            CannotRead: Call again.
        """
        try:
            if not self._find():
                return None
        except NoLines:
            return None
        if at_end:
            at = os.fstat(self._fd).st_size
            self._go_to(at)
            return at, self._mark
        if state == self._mark_at(at):
            self._go_to(at)
        return None

    def next(self) -> Lines:
        """The next piece; of the file that has taken its place, once this one was read to its end.

        Raises:
            PermissionError: It may not be read: nobody would ever be told of anything.
            CannotRead: Call again.
        """
        try:
            return self._next()
        except PermissionError:
            raise
        except OSError as problem:
            if self._is_replaced():
                self.close()
            raise _unreadable(self._path, problem) from None

    def _next(self) -> Lines:
        if self._fd < 0 and not self._find():
            return Lines(b"", 0, [], more=False)
        if self._is_at_rest and self._mark != self._mark_at(self._lines.at):
            self._go_to(0)  # it was cut: what is there now is new
        self._is_at_rest = False
        data = os.pread(self._fd, PIECE, self._lines.at)
        is_over = False
        if not data and self._is_replaced():
            data = os.pread(self._fd, PIECE, self._lines.at)  # until its last byte
            is_over = not data
        block = self._lines.feed(data, last=is_over)
        searched = self._lines.searched
        state = self._mark_at(searched) if block else []
        if is_over:
            self.close()
        elif not data:
            self._mark, self._is_at_rest = self._mark_at(self._lines.at), True
        return Lines(block, searched, state, more=bool(data) or is_over)

    def _is_replaced(self) -> bool:
        found = _identity(self._path)
        return found is not None and found != self._file

    def _find(self) -> bool:
        found = _identity(self._path)
        self.device = device_of(self._path) if found is None else found[0]
        return found is not None and self._open(found)

    def _open(self, file: list[int]) -> bool:
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            raise
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as problem:
            raise _unreadable(self._path, problem) from None
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            self.close()
            raise NoLines(self._path)
        self._file = file
        self._go_to(0)
        return True

    def _go_to(self, at: int) -> None:
        self._lines = LineBlocks(at)
        self._mark, self._is_at_rest = self._mark_at(at), True

    def _mark_at(self, at: int) -> list[int]:
        """Which file it is, and what is before the offset: a new file may have the number of an old one."""
        begin = max(0, at - MARKED)
        try:
            before = os.pread(self._fd, at - begin, begin)
        except OSError:
            before = b""
        return [*self._file, zlib.crc32(before)]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _unreadable(path: str, problem: OSError) -> CannotRead:
    return CannotRead(f"{path} cannot be looked at: {problem.strerror or problem}.")


def device_of(path: str) -> int | None:
    """The device of a file that is not there: where it would be."""
    try:
        return os.stat(os.path.dirname(path) or "/").st_dev
    except OSError:
        return None


def _identity(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise _unreadable(path, problem) from None
    return [found.st_dev, found.st_ino]
