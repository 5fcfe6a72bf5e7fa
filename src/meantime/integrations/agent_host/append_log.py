"""A file that only grows, a record a line, each written at once: a crash cuts the last one, and no other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from meantime.system.platform import sync_file

T = TypeVar("T")
INTERRUPTED = "interrupted: what it did is not known"  # the result of a call that a crash or a stop cut off


class AppendLog:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._whole = not _is_cut(path)

    def append(self, *records: bytes) -> None:
        data = b"".join(b"%b\n" % record for record in records)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if not self._whole:  # what a crash cut off must not be a part of what comes now
                os.ftruncate(fd, self.path.read_bytes().rfind(b"\n") + 1)
            written = os.write(fd, data)
            self._whole = written == len(data)
            if not self._whole:
                raise OSError(f"only {written} of {len(data)} bytes could be written to {self.path}")
        finally:
            os.close(fd)

    def sync(self) -> None:
        """Also over a power cut."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync_file(fd)
        finally:
            os.close(fd)

    def records(self) -> list[bytes]:
        """The whole ones."""
        try:
            return [record for record in self.path.read_bytes().split(b"\n")[:-1] if record]
        except FileNotFoundError:
            return []

    def readable(self, kind: type[T]) -> Iterator[T]:
        """The records that are a `kind` in JSON; all others are left out, such as one that a crash cut."""
        for record in self.records():
            with suppress(msgspec.MsgspecError):
                yield msgspec.json.decode(record, type=kind)


def _is_cut(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            if not file.seek(0, os.SEEK_END):
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except FileNotFoundError:
        return False
