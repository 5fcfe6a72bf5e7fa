"""The file of a backup: a tar that holds a description of itself, a ledger with all files beside it, and
checksums.

Nothing in it is believed when it is read: names, kinds and sizes are checked before anything is written.
Neither side keeps more in memory than one piece of one file.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import msgspec
from msgspec import Struct

from meantime.kernel.errors import LedgerError
from meantime.system.atomic_file import NEW_FILE

FORMAT = 1
LEDGER = "ledger.db"  # whatever its name was
BESIDE = (".files", ".commands", ".agents")  # folders beside a ledger: payloads, commands, conversations
HEAD, SUMS = "meantime-backup.json", "SHA256SUMS"  # the first and the last file of the tar
PIECE = 1 << 20
DEEPEST, LONGEST = 16, 1024  # folders in a name, and its characters
MOST_HEAD = 1 << 16


class ArchiveHead(Struct, frozen=True):
    """The description that a backup holds of itself."""

    format: int
    meantime: str  # the version that made it
    made: float  # seconds since 1970


class BadArchive(LedgerError):
    code = "bad_archive"


def write(stage: Path, head: ArchiveHead, to: BinaryIO) -> None:
    """Everything in the stage. Raises OSError, even for a file that shrank meanwhile."""
    with (
        tempfile.TemporaryFile() as sums,
        tarfile.open(fileobj=to, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        said = msgspec.json.encode(head)
        _add(tar, HEAD, io.BytesIO(said), len(said), sums)
        for path in files_in(stage):
            with open(path, "rb") as file:
                name = path.relative_to(stage).as_posix()
                _add(tar, name, file, os.fstat(file.fileno()).st_size, sums)
        size = sums.tell()
        sums.seek(0)
        _add(tar, SUMS, sums, size, None)


def files_in(folder: Path) -> Iterator[Path]:
    """Regular files. Pipes and sockets belong to processes, and are not kept."""
    folders: list[Path] = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)


def _add(tar: tarfile.TarFile, name: str, file: IO[bytes], size: int, sums: IO[bytes] | None) -> None:
    about = tarfile.TarInfo(name)
    about.size, about.mode = size, 0o600
    summing = _Summing(file)
    tar.addfile(about, cast("IO[bytes]", summing))
    _forget_members(tar)
    if sums is not None:
        sums.write(_line(summing.hexdigest(), name))


def _forget_members(tar: tarfile.TarFile) -> None:
    """It would keep all of them in memory; nobody asks for them."""
    cast("Any", tar).members.clear()


def read(path: Path, into: Path | None = None) -> ArchiveHead:
    """Checks all of it, and writes it to an empty folder where one is given. Raises BadArchive, OSError."""
    try:
        with open(path, "rb") as file, tarfile.open(fileobj=cast("IO[bytes]", _Wary(file)), mode="r:") as tar:
            return _Reading(tar, path, into).all()
    except (tarfile.TarError, EOFError) as problem:
        raise BadArchive(
            f"{path} cannot be read as a backup: {problem}.", hint="It may be cut short: copy it again."
        ) from problem


class _Reading:
    def __init__(self, tar: tarfile.TarFile, path: Path, into: Path | None) -> None:
        self._tar = tar
        self._path = path
        self._into = into
        self._sums = hashlib.sha256()

    def all(self) -> ArchiveHead:
        head = self._head()
        seen = False
        while (member := self._next()).name != SUMS:
            _check_name(member.name, self._path)
            seen = seen or member.name == LEDGER
            self._take(member)
        given = hashlib.sha256()
        self._pour(member, given.update)
        if given.digest() != self._sums.digest():
            raise BadArchive(f"{self._path} is damaged: its checksums do not fit.", hint="Copy it again.")
        if not seen or self._tar.next() is not None:
            raise BadArchive(f"{self._path} is not a backup of ours.", hint="Name another file.")
        return head

    def _head(self) -> ArchiveHead:
        member = self._next()
        try:
            if member.name != HEAD or member.size > MOST_HEAD:
                raise msgspec.ValidationError
            said = io.BytesIO()
            self._pour(member, said.write)
            head = msgspec.json.decode(said.getvalue(), type=ArchiveHead)
        except msgspec.MsgspecError:
            text = f"{self._path} is not a backup of Meantime."
            raise BadArchive(text, hint="Name a file that `meantime backup` wrote.") from None
        if head.format != FORMAT:
            raise BadArchive(
                f"{self._path} is of format {head.format}, from Meantime {head.meantime}; "
                f"this Meantime reads format {FORMAT}.",
                hint="Upgrade Meantime.",
            )
        self._sums.update(_line(hashlib.sha256(said.getvalue()).hexdigest(), HEAD))
        return head

    def _next(self) -> tarfile.TarInfo:
        member = self._tar.next()
        _forget_members(self._tar)
        if member is None:
            raise BadArchive(f"{self._path} is cut short.", hint="Copy it again.")
        if not member.isreg() or member.issparse():
            raise BadArchive(
                f"{self._path} holds {member.name!r}, which is not a plain file.",
                hint="A backup of ours holds nothing else: do not trust this one.",
            )
        return member

    def _take(self, member: tarfile.TarInfo) -> None:
        sum = hashlib.sha256()
        if self._into is None:
            self._pour(member, sum.update)
        else:
            target = self._into / member.name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                fd = os.open(target, NEW_FILE, 0o600)
            except (FileExistsError, NotADirectoryError):
                text = f"{self._path} holds {member.name!r} twice."
                raise BadArchive(text, hint="Name another file.") from None
            with open(fd, "wb") as file:
                self._pour(member, sum.update, file.write)
        self._sums.update(_line(sum.hexdigest(), member.name))

    def _pour(self, member: tarfile.TarInfo, *takers: Callable[[bytes], object]) -> None:
        file = self._tar.extractfile(member)
        assert file is not None, "a plain file"
        while piece := file.read(PIECE):
            for take in takers:
                take(piece)


def _check_name(name: str, path: Path) -> None:
    """One of a ledger's own files, inside of its folders."""
    parts = PurePosixPath(name).parts
    folders = {f"{LEDGER}{ending}" for ending in BESIDE}
    inside = len(parts) > 1 and parts[0] in folders and ".." not in parts
    plain = name == "/".join(parts) and "\0" not in name and len(parts) <= DEEPEST and len(name) <= LONGEST
    if not plain or not (inside or name == LEDGER):
        raise BadArchive(
            f"{path} holds {name[:200]!r}, which is not a part of a ledger.",
            hint="A backup of ours holds nothing else: do not trust this one.",
        )


def _line(sum: str, name: str) -> bytes:
    """As `sha256sum --check` reads it."""
    return f"{sum}  {name}\n".encode("utf-8", "surrogateescape")


class _Summing:
    """A file that is read, and summed up on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()

    def read(self, count: int = -1) -> bytes:
        data = self._file.read(count)
        self._sum.update(data)
        return data

    def hexdigest(self) -> str:
        return self._sum.hexdigest()


class _Wary:
    """A file of a stranger: a header may claim to be gigabytes long, and would be read at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek = file.seek
        self.tell = file.tell

    def read(self, count: int = -1) -> bytes:
        if not 0 <= count <= PIECE:
            raise tarfile.ReadError("a header in it is too long")
        return self._file.read(count)
