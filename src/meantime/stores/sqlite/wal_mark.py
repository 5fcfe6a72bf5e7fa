"""The high-water mark: how far the WAL had been written when a commit was acknowledged.

SQLite reads a WAL as far as its frames add up. A damaged frame looks like the torn end of a write that nobody
was promised, so everything after it vanishes without a word. The mark beside the ledger tells the two apart:
a frame that is bad or missing at or before the mark is damage; after the mark it is a torn end.

The mark may lag behind the WAL and must never run ahead of it, not even in a power cut. So it is written
after the commit, and needs no sync. It holds two points: `synced`, the last commit that was synced, and
`latest`, the last commit of all. The kernel keeps `latest` over a kill -9, but not over a restart of the
machine: it counts within one boot only.

A checkpoint brings the WAL into the database; then the WAL is written from its beginning again. Each point
says which number of checkpoints (checkpoints.py) the database has by then: a mark that a power cut left at an
older WAL claims nothing that is missing. Where a checkpoint empties the WAL without having raised that number
in it, as on a full disk, the mark is lifted and synced first.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import time
import uuid
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from meantime.system.platform import boot, sync_data

from .checkpoints import number_in
from .wal_index import SALT, WAL_HEADER, Point, WalIndex

LOOKED = 0.1  # seconds between two looks for the name of the WAL
_POINT = struct.Struct("=8s 16s 8s 8s 5I")
_FIRST_POINT = struct.Struct("=8s 16s 8s 8s 4I")  # of earlier versions, which did not say what it needs
_SUM = struct.Struct("=I")
_MAGIC, _FIRST_MAGIC = b"MTMARK02", b"MTMARK01"
_SLOT = _POINT.size + _SUM.size
_FIRST_SLOT = _FIRST_POINT.size + _SUM.size
_CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_NOTHING = Point(bytes(8), bytes(8), 0, 0, 0, 0)  # claims nothing


class WalMark:
    """The mark of one ledger: checked before the ledger is opened, then kept with each commit."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.path = Path(f"{ledger}.mark")
        self._boot = _boot_id()
        self._fd = -1
        self._index: WalIndex | None = None
        self._nothing = _packed(_NOTHING, self._boot)
        self._synced = self._nothing  # as it is written
        self._looked = 0.0
        self._begun: tuple[bytes, int] | None = None  # salt of the WAL, and what the last commit needed
        self.needs = 0  # the number of the next checkpoint

    def missing(self, checkpoints: int) -> str:
        """The acknowledged commits that the ledger lacks, or the empty string. For a closed ledger.

        checkpoints: the number that was noted after the last whole checkpoint.
        """
        point = self.claimed()
        if not point.frames:
            return ""
        end = self._recovered(point) if has_frames(self._ledger) else None
        if end is None or end.salt != point.salt:
            if self._is_in_database(point, checkpoints, has_wal=end is not None):
                return ""
            return "its WAL is gone, or is not the one that was written"
        if end.frames < point.frames:
            return f"its WAL can be read up to frame {end.frames}, and was written up to {point.frames}"
        return "" if end.checksum == point.checksum else "its WAL is not the one that was written"

    def _is_in_database(self, point: Point, noted: int, *, has_wal: bool) -> bool:
        """By a checkpoint of ours, or by another program that has brought the WAL into it, as it should.

        A checkpoint that was cut off may have written the number into the database and other pages not, so
        what was noted after it counts. The note is not synced: after a restart of the machine a later WAL
        proves as much, as one is begun only when all of the earlier one is in the database."""
        number = noted
        if has_wal and not self._is_of_this_boot():
            number = max(noted, number_in(self._ledger) or 0)
        return number >= point.needs > 0 or _page_sum(self._ledger, point) == point.page_sum

    def is_of_another(self) -> bool:
        """Whether the WAL is not the one that the mark is about. For a ledger that was closed: there is no
        WAL beside it then, unless somebody was reading it."""
        try:
            with open(f"{self._ledger}-wal", "rb") as wal:
                head = wal.read(WAL_HEADER)
        except OSError:
            return False
        return has_frames(self._ledger) and head[SALT] != self.claimed().salt

    def claimed(self) -> Point:
        """A mark that is missing or cannot be read claims nothing: earlier versions wrote none, a ledger that
        was closed has none, and a power cut may have torn it."""
        said = self._said()
        return (
            _unpacked(said[_SLOT:], self._boot)
            or _unpacked(said[:_SLOT])
            or _unpacked_first(said[_FIRST_SLOT:], self._boot)
            or _unpacked_first(said[:_FIRST_SLOT])
            or _NOTHING
        )

    def _is_of_this_boot(self) -> bool:
        return _unpacked(self._said()[_SLOT:], self._boot) is not None

    def _said(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError:
            return b""

    def _recovered(self, point: Point) -> Point | None:
        """How much of the WAL SQLite takes. `mode=ro`: closing such a connection leaves the WAL as it is."""
        try:
            db = sqlite3.connect(f"{self._ledger.as_uri()}?mode=ro", uri=True)
        except sqlite3.Error:
            return None
        index = None
        try:
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            index = WalIndex(self._ledger)
            end = index.end()
            if end is None or end.salt != point.salt or end.frames < point.frames:
                return end
            return end._replace(checksum=index.checksum_at(point))
        except (sqlite3.Error, OSError):
            return None
        finally:
            db.close()
            if index is not None:
                index.close()

    # -- while the ledger is open

    def begin(self, checkpoints: int) -> None:
        """When a connection is open. A full disk does not stop us from owning: then there is no mark. Raises
        OSError where an old one can neither be written nor removed."""
        self.needs = checkpoints + 1
        try:
            self._index = WalIndex(self._ledger)
            self._fd = os.open(self.path, _CREATE, 0o600)
            written, end = os.pread(self._fd, _SLOT, 0), self._index.end()
            known = _unpacked(written)
            if known is not None and end is not None and known.salt == end.salt:
                self._synced = written  # the WAL goes on where the last owner was killed
            else:
                self.lift()
        except OSError:
            self._drop()
            self.forget()
        self.move(synced=False)

    def move(self, *, synced: bool) -> None:
        """After a commit. A mark that cannot be written stays behind, which is allowed."""
        if self._index is None or self._fd < 0:
            return
        with contextlib.suppress(OSError):
            end = self._index.end(self.needs)
            latest = self._nothing if end is None else _packed(end, self._boot)
            if synced:
                self._synced = latest
            os.pwrite(self._fd, self._synced + latest, 0)
            if end is not None:
                self._follow(end)

    def _follow(self, end: Point) -> None:
        """Another program may have begun the WAL anew: then nothing else tells that from a WAL that is gone,
        should a power cut leave an older mark."""
        begun, self._begun = self._begun, (end.salt, end.needs)
        if begun is not None and begun[0] != end.salt and begun[1] == end.needs:
            sync_data(self._fd)

    def used_bytes(self) -> tuple[int, int] | None:
        """As `WalIndex.used_bytes`. None for a ledger without a mark, too."""
        return self._index and self._index.used_bytes()

    def write_again(self) -> None:
        """As `WalIndex.write_again`. Raises OSError."""
        if self._index is not None:
            self._index.write_again()

    def settle(self) -> None:
        """At a close that leaves the WAL: it is this ledger's own, even after a restart of the machine.
        Raises OSError."""
        if self._index is not None and self._fd >= 0:
            self._index.sync()
            self.move(synced=True)
            sync_data(self._fd)

    def lift(self) -> None:
        """Claims nothing until the next commit. Synced: once the WAL is emptied, a power cut may leave it
        so. Raises OSError, and then the WAL has to stay as it is."""
        self._synced = self._nothing
        if self._fd >= 0:
            os.pwrite(self._fd, 2 * self._nothing, 0)
            sync_data(self._fd)

    @contextmanager
    def lifted(self) -> Generator[None]:
        """Around a checkpoint that empties the WAL. Where it could not, the claim holds again."""
        before = self._synced
        self.lift()
        try:
            yield
        finally:
            end, known = self._index and self._index.end(), _unpacked(before)
            if end is not None and known is not None and end.salt == known.salt:
                self._synced = before
            self.move(synced=False)

    def has_wal(self) -> bool:
        """Whether the WAL still has its name; looked up now and then. Commits to one that has no name are
        lost if this process is killed; the mark tells the next owner of those in between."""
        now = time.monotonic()
        if self._index is None or now - self._looked < LOOKED:
            return True
        found = self._index.is_at(f"{self._ledger}-wal")
        self._looked = now if found else 0.0
        return found

    def trim(self) -> bool:
        """False where the disk does not even allow that."""
        try:
            if self._index is not None:
                self._index.trim(f"{self._ledger}-wal")
        except OSError:
            return False
        return self._index is not None

    def close(self) -> None:
        """After the last connection. The mark goes with the WAL that it is about."""
        if self._index is not None:
            self._index.close()
            self._index = None
        self._drop()
        if not has_frames(self._ledger):
            with contextlib.suppress(OSError):
                self.forget()

    def _drop(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def _boot_id() -> bytes:
    try:
        return uuid.UUID(boot()).bytes
    except ValueError:
        return b""


def _packed(point: Point, boot_id: bytes) -> bytes:
    body = _POINT.pack(_MAGIC, boot_id, point.salt, point.checksum, *point[2:])
    return body + _SUM.pack(zlib.crc32(body))


def _unpacked(
    slot: bytes, boot_id: bytes | None = None, form: struct.Struct = _POINT, magic: bytes = _MAGIC
) -> Point | None:
    """None where it was not written whole, or in another boot than the one that is asked for."""
    body, written = slot[: form.size], slot[form.size : form.size + _SUM.size]
    if len(body) < form.size or _SUM.pack(zlib.crc32(body)) != written:
        return None
    known, boot_then, *rest = form.unpack(body)
    if known != magic or (boot_id is not None and boot_then != boot_id):
        return None
    return Point(*rest)


def _unpacked_first(slot: bytes, boot_id: bytes | None = None) -> Point | None:
    return _unpacked(slot, boot_id, _FIRST_POINT, _FIRST_MAGIC)


def has_frames(ledger: Path) -> bool:
    try:
        return os.stat(f"{ledger}-wal").st_size > WAL_HEADER
    except OSError:
        return False


def _page_sum(ledger: Path, point: Point) -> int | None:
    """The checksum of the page as it is in the database itself."""
    try:
        with ledger.open("rb") as file:
            file.seek((point.page - 1) * point.page_size)
            return zlib.crc32(file.read(point.page_size))
    except OSError:
        return None
