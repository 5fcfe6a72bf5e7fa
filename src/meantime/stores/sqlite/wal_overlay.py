"""A damaged database and its WAL as one plain file, from whatever pages are whole.

SQLite stops at the first bad frame of a WAL, and refuses a file that is shorter than its header says. Here
each frame is judged by itself: its checksum goes on from the one that is stored in the frame before. A WAL
that began anew after a checkpoint still has older frames behind its end, with other salts; they are in the
database since long, and must not go over what is newer there.
"""

from __future__ import annotations

import io
import shutil
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .wal_index import FRAME_HEADER, SALT, WAL_HEADER

_FRAME = struct.Struct(">II8s8s")
_BIG_ENDIAN_SUMS = 0x377F0683
_MASK = 0xFFFFFFFF
_NEAR = 1_000_000  # times that a WAL begins anew. Another program may begin one with any number.


class WalFrame(NamedTuple):
    page: int
    size: int  # of the database in pages, where the frame ends a commit
    salt: bytes
    is_whole: bool
    content: bytes


class Overlay:
    """The frames of a WAL, for the database that they belong to. Reading them is what takes long."""

    def __init__(self, damaged: Path, claimed: bytes) -> None:
        """`claimed`: the salt of the WAL that had acknowledged commits, or zeros. Raises OSError."""
        wal = Path(f"{damaged}-wal")
        content = wal.read_bytes() if wal.exists() else b""
        with damaged.open("rb") if damaged.exists() else io.BytesIO() as file:
            self._page_size = _page_size(file.read(100)) or _wal_page_size(content)
        self._damaged = damaged
        self.frames = list(_frames(content, self._page_size))
        self._salt = _newest_salt(content[SALT], claimed, self.frames)

    def whole_frames(self, salt: bytes) -> int:
        """From the beginning, of this WAL and no other."""
        for number, frame in enumerate(self.frames):
            if not frame.is_whole or frame.salt != salt:
                return number
        return len(self.frames)

    def flatten(self, into: Path, *, lenient: bool) -> None:
        """`lenient`: goes on after a bad frame; otherwise stops there, as SQLite does. Raises OSError."""
        _flatten(self._damaged, into, _committed(self.frames, self._salt, lenient=lenient), self._page_size)


def _flatten(damaged: Path, into: Path, frames: Iterator[WalFrame], page_size: int) -> None:
    if damaged.exists():
        shutil.copyfile(damaged, into)
    else:
        into.touch(mode=0o600)
    with into.open("r+b") as file:
        for frame in frames:
            file.seek((frame.page - 1) * page_size)
            file.write(frame.content)
        file.seek(0)
        head = file.read(100)
        if len(head) == 100:
            file.seek(18)
            file.write(b"\x01\x01")  # the WAL is in it: SQLite must not look for one
            file.truncate(max(into.stat().st_size, int.from_bytes(head[28:32], "big") * page_size))


def _page_size(head: bytes) -> int:
    if not head.startswith(b"SQLite format 3\0"):
        return 0
    size = int.from_bytes(head[16:18], "big")
    return 65536 if size == 1 else size


def _wal_page_size(content: bytes) -> int:
    said = int.from_bytes(content[8:12], "big")
    return said if said in {1 << power for power in range(9, 17)} else 4096


def _newest_salt(header: bytes, claimed: bytes, frames: list[WalFrame]) -> bytes:
    """The header's. Where that is damaged: the first half of a salt counts how often the WAL began anew. A
    salt that only one frame has may be damaged itself. Nothing of a WAL that is older than the claimed one is
    taken: it is in the database since long."""
    salts = Counter(frame.salt for frame in frames if frame.is_whole)
    repeated = [salt for salt, count in salts.items() if count > 1] or list(salts)
    found = [header] if header in salts else repeated
    if not found:
        return header
    if any(claimed):
        later = {salt: _begun_since(claimed, salt) for salt in found}
        if all(-_NEAR < count < 0 for count in later.values()):
            return claimed
        if near := [salt for salt in found if 0 <= later[salt] < _NEAR]:
            return max(near, key=lambda salt: later[salt])
    return max(found, key=lambda salt: _begun_since(found[0], salt))


def _begun_since(one: bytes, other: bytes) -> int:
    """How often the WAL began anew from one salt to the other. The count wraps around."""
    difference = (int.from_bytes(other[:4], "big") - int.from_bytes(one[:4], "big")) & _MASK
    return difference - (_MASK + 1) if difference >> 31 else difference


def _committed(frames: list[WalFrame], salt: bytes, *, lenient: bool) -> Iterator[WalFrame]:
    """Whole frames, up to the end of the last commit."""
    pending: list[WalFrame] = []
    for frame in frames:
        if not frame.is_whole or frame.salt != salt:
            if not lenient:
                return
            continue
        pending.append(frame)
        if frame.size:
            yield from pending
            pending.clear()


def _frames(content: bytes, page_size: int) -> Iterator[WalFrame]:
    order = ">" if int.from_bytes(content[:4], "big") == _BIG_ENDIAN_SUMS else "<"
    before = content[24:32]
    for at in range(WAL_HEADER, len(content) - page_size - FRAME_HEADER + 1, FRAME_HEADER + page_size):
        page, size, salt, stored = _FRAME.unpack_from(content, at)
        body = content[at + FRAME_HEADER : at + FRAME_HEADER + page_size]
        is_whole = page > 0 and _sum(before, content[at : at + 8] + body, order) == stored
        yield WalFrame(page, size, salt, is_whole, body)
        before = stored


def _sum(before: bytes, content: bytes, order: str) -> bytes:
    """SQLite's: https://sqlite.org/fileformat2.html#checksum_algorithm"""
    first, second = struct.unpack(">2I", before)
    for one, other in struct.iter_unpack(f"{order}2I", content):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return struct.pack(">2I", first, second)
