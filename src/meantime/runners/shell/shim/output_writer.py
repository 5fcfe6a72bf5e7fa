"""The output of a command, into files: the beginning for ever, and the end in a ring. Never more disk."""

from __future__ import annotations

import os

from meantime.system.platform.tree import splice

from . import cells
from .cells import CHUNK

_CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Stream:
    """One stream of the command. Its file is made with its first bytes: most commands use one at most,
    and making a file costs as much as starting a small command."""

    def __init__(self, fd: int, path: str, total: int, gap: int, state: memoryview, splices: bool) -> None:
        self.fd = fd
        self._path = path
        self._total = total  # the cells it counts in
        self._gap = gap
        self._state = state
        self._splices = splices
        self._file = -1

    def pump(self) -> bool:
        """Moves what there is, at most one chunk. False at the end of the stream."""
        state = self._state
        total, head = state[self._total], state[cells.HEAD]
        if total < head:
            place, room = total, head - total
        else:
            ring = state[cells.RING] + CHUNK  # what is being overwritten was promised to nobody
            place = head + (total - head) % ring
            room = head + ring - place
        try:
            moved = self._move(place, min(room, CHUNK))
        except BlockingIOError:
            return True
        state[self._total] = total + moved
        return moved > 0

    def _move(self, place: int, most: int) -> int:
        if self._splices and self._file >= 0:
            try:
                return splice(self.fd, self._file, most, place)
            except BlockingIOError:
                raise
            except OSError:
                pass  # not every file system can: then it takes the long way, which also knows a full disk
        data = self._read(most)
        if data and not self._write(data, place):
            self._lost(self._state[self._total], len(data))
        return len(data)

    def _write(self, data: bytes, place: int) -> bool:
        """False where the disk is full or failing; the command must not hang on that."""
        try:
            if self._file < 0:
                self._file = os.open(self._path, _CREATE, 0o600)
            return os.pwrite(self._file, data, place) == len(data)
        except OSError:
            return False

    def _read(self, most: int) -> bytes:
        try:
            return os.read(self.fd, most)
        except BlockingIOError:
            raise
        except OSError:
            return b""  # a terminal says so when its last user is gone

    def _lost(self, start: int, count: int) -> None:
        """One gap a stream: a second one swallows everything between them, which is honest, if not exact."""
        if count:
            if not self._state[self._gap + 1]:
                self._state[self._gap] = start
            self._state[self._gap + 1] = start + count

    def close(self) -> None:
        for fd in (self.fd, self._file):
            if fd >= 0:
                os.close(fd)
        self.fd = self._file = -1


class Order:
    """In which order the streams took turns: a note of both totals at every change, the newest kept."""

    def __init__(self, path: str, state: memoryview) -> None:
        self._path = path
        self._state = state
        self._last: Stream | None = None
        self._file = -1

    def note(self, stream: Stream) -> None:
        """Before this stream writes."""
        last, self._last = self._last, stream
        if last is None or last is stream:
            return
        count = self._state[cells.SWITCHES]
        entry = b"".join(
            self._state[cell].to_bytes(8, "little") for cell in (cells.OUT_TOTAL, cells.ERR_TOTAL)
        )
        try:
            if self._file < 0:
                self._file = os.open(self._path, _CREATE, 0o600)
            os.pwrite(self._file, entry, count % cells.MAX_SWITCHES * cells.SWITCH_BYTES)
        except OSError:
            return  # the order of this turn is not kept; what was said is
        self._state[cells.SWITCHES] = count + 1
