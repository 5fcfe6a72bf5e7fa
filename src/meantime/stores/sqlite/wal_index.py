"""Where the WAL ends, as SQLite's own index of it says: https://sqlite.org/walformat.html"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from meantime.system.platform import sync_data

WAL_HEADER = 32
FRAME_HEADER = 24
SALT = slice(16, 24)  # in the header of a WAL
_HEAD = struct.Struct("=I 8x BxH 2I 2I 8s 8x")  # in the machine's own byte order
_BACKFILLED = struct.Struct("=96x I")  # frames that are in the database, behind the head and its copy
_VERSION = 3007000
_LOOKS = 100  # at a head that another program is writing
_CHECKSUM = struct.Struct(">2I")  # as it is in a frame


class Point(NamedTuple):
    """Where the WAL stood after a commit."""

    salt: bytes  # tells this WAL from the ones before the last checkpoints
    checksum: bytes  # of the last frame; it covers all frames before it
    frames: int
    page_size: int
    page: int  # the page in the last frame, and what was in it: a checkpoint brings that to the database
    page_sum: int
    needs: int = 0  # the number of checkpoints in a database that has this commit


class _Head(NamedTuple):
    is_made: bool
    page_size: int
    frames: int
    pages: int  # of the database
    checksum: bytes
    salt: bytes


class WalIndex:
    """Reads the index while a connection is open.

    Locks of POSIX are lost when any descriptor of their file is closed, so those of the index and of the
    database have to be closed after the connections."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._database = -1
        self._wal = os.open(f"{ledger}-wal", os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._found = os.fstat(self._wal)
            self._descriptor = os.open(f"{ledger}-shm", os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            os.close(self._wal)
            raise
        # SQLite has it in memory, too.
        self._index = mmap.mmap(self._descriptor, _BACKFILLED.size, prot=mmap.PROT_READ)

    def _head(self) -> _Head | None:
        """None where SQLite keeps its index in a form that we do not know. It writes the head twice: two that
        differ are being written, by another program."""
        for _ in range(_LOOKS):
            both = self._index[: 2 * _HEAD.size]
            if both[: _HEAD.size] == both[_HEAD.size :]:
                version, is_made, page_size, frames, pages, sum1, sum2, salt = _HEAD.unpack_from(both)
                if version != _VERSION:
                    return None
                page_size = 65536 if page_size == 1 else page_size  # the index has 16 bits for it
                return _Head(bool(is_made), page_size, frames, pages, _CHECKSUM.pack(sum1, sum2), salt)
        return None

    def used_bytes(self) -> tuple[int, int] | None:
        """Bytes of the WAL that are in use, and those of them that are not in the database yet. None where
        that is not known."""
        head, backfilled = self._head(), self._backfilled()
        if head is None or backfilled > head.frames:
            return None
        size = FRAME_HEADER + head.page_size
        return head.frames * size, (head.frames - backfilled) * size

    def _backfilled(self) -> int:
        (frames,) = _BACKFILLED.unpack_from(self._index)
        return frames

    def end(self, needs: int = 0) -> Point | None:
        """None where the WAL is empty, or where that is not known."""
        head = self._head()
        if head is None or not head.is_made or not head.frames:
            return None
        frame = self._frame(head.frames, head.page_size)
        if len(frame) < FRAME_HEADER + head.page_size:
            return None
        page, page_sum = _page_of(frame), zlib.crc32(memoryview(frame)[FRAME_HEADER:])
        return Point(head.salt, head.checksum, head.frames, head.page_size, page, page_sum, needs)

    def _frame(self, number: int, page_size: int) -> bytes:
        return os.pread(self._wal, FRAME_HEADER + page_size, frame_offset(number, page_size))

    def trim(self, wal: str) -> None:
        """Cuts off the frames behind the last commit. Frames of a commit that failed to sync are whole, and
        would be taken for a commit after a kill. Raises OSError where nobody knows where they begin.
        """
        head = self._head()
        if head is None:
            raise OSError("the end of the WAL is not known")
        if self.is_at(wal):
            os.truncate(wal, frame_offset(head.frames + 1, head.page_size) if head.frames else 0)

    def write_again(self) -> None:
        """Pages that checkpoints have brought into the database, which is synced only when all are there:
        after a failed sync they may not be on the disk, and SQLite would not write them again. Raises
        OSError."""
        if self._database < 0:
            self._database = os.open(self._ledger, os.O_RDWR | os.O_CLOEXEC)
        written = -1
        while (backfilled := self._backfilled()) != written:  # another program may go on with a checkpoint
            head = self._head()
            if head is None:
                return
            newest: dict[int, int] = {}
            for number in range(1, min(backfilled, head.frames) + 1):
                newest[_page_of(os.pread(self._wal, 4, frame_offset(number, head.page_size)))] = number
            for page, number in newest.items():
                if page <= head.pages:
                    content = self._frame(number, head.page_size)[FRAME_HEADER:]
                    os.pwrite(self._database, content, (page - 1) * head.page_size)
            written = backfilled
        sync_data(self._database)

    def sync(self) -> None:
        sync_data(self._wal)

    def checksum_at(self, point: Point) -> bytes:
        """As it is now in the frame of the point."""
        return os.pread(self._wal, FRAME_HEADER, frame_offset(point.frames, point.page_size))[16:]

    def is_at(self, wal: str) -> bool:
        """Whether the WAL that SQLite writes still has its name."""
        try:
            return os.path.samestat(os.stat(wal), self._found)
        except OSError:
            return False

    def close(self) -> None:
        self._index.close()
        for descriptor in (self._descriptor, self._wal, self._database):
            if descriptor >= 0:
                os.close(descriptor)


def frame_offset(number: int, page_size: int) -> int:
    return WAL_HEADER + (number - 1) * (FRAME_HEADER + page_size)


def _page_of(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "big")
