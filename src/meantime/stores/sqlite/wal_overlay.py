"""A damaged database and its WAL as one plain file, from whatever pages are whole.

SQLite stops at the first bad frame of a WAL, and refuses a file that is shorter than its header says. Here
each frame is judged by itself: its checksum goes on from the one that is stored in the frame before.
"""

from __future__ import annotations

import shutil
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .wal_mark import FRAME_HEADER, WAL_HEADER

_FRAME = struct.Struct(">II8s8s")
_BIG_ENDIAN_SUMS = 0x377F0683
_MASK = 0xFFFFFFFF


class Frame(NamedTuple):
    page: int
    size: int  # of the database in pages, where the frame ends a commit
    salt: bytes
    is_whole: bool
    content: bytes


def flatten(damaged: Path, into: Path, *, lenient: bool) -> None:
    """`lenient`: goes on after a bad frame; otherwise stops there, as SQLite does. Raises OSError."""
    wal = Path(f"{damaged}-wal")
    if damaged.exists():
        shutil.copyfile(damaged, into)
    else:
        into.touch(mode=0o600)
    content = wal.read_bytes() if wal.exists() else b""
    with into.open("r+b") as file:
        head = file.read(100)
        page_size = _page_size(head) or _wal_page_size(content)
        for frame in _committed(content, page_size, lenient=lenient):
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


def _committed(content: bytes, page_size: int, *, lenient: bool) -> Iterator[Frame]:
    """Whole frames, up to the end of the last commit."""
    frames = list(_frames(content, page_size))
    salts = Counter(frame.salt for frame in frames)
    pending: list[Frame] = []
    for frame in frames:
        if not frame.is_whole or frame.salt != salts.most_common(1)[0][0]:
            if not lenient:
                return
            continue
        pending.append(frame)
        if frame.size:
            yield from pending
            pending.clear()


def _frames(content: bytes, page_size: int) -> Iterator[Frame]:
    order = ">" if int.from_bytes(content[:4], "big") == _BIG_ENDIAN_SUMS else "<"
    before = content[24:32]
    for at in range(WAL_HEADER, len(content) - page_size - FRAME_HEADER + 1, FRAME_HEADER + page_size):
        page, size, salt, stored = _FRAME.unpack_from(content, at)
        body = content[at + FRAME_HEADER : at + FRAME_HEADER + page_size]
        is_whole = page > 0 and _sum(before, content[at : at + 8] + body, order) == stored
        yield Frame(page, size, salt, is_whole, body)
        before = stored


def _sum(before: bytes, content: bytes, order: str) -> bytes:
    """SQLite's: https://sqlite.org/fileformat2.html#checksum_algorithm"""
    first, second = struct.unpack(">2I", before)
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for place in range(0, len(words), 2):
        first = (first + words[place] + second) & _MASK
        second = (second + words[place + 1] + first) & _MASK
    return struct.pack(">2I", first, second)
