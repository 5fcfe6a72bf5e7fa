"""A text that grows: its beginning and its end are kept, by absolute offset, in files of one size."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from meantime.kernel.model import Chunk
from meantime.runners.shell.utf8 import last_lines, trim
from meantime.system.append_file import append

SIZE = 1 << 20  # bytes of a segment
KEPT = 4  # segments at the end, beside the first


class Segments:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._base = str(folder / name)  # a path is put together for every piece that is said
        self.total = self._measure()

    def _path(self, number: int) -> str:
        return f"{self._base}.{number}"

    def _numbers(self) -> list[int]:
        found = self._folder.glob(f"{self._name}.*")
        return sorted(int(path.suffix[1:]) for path in found if path.suffix[1:].isdigit())

    def _measure(self) -> int:
        numbers = self._numbers()
        return numbers[-1] * SIZE + os.stat(self._path(numbers[-1])).st_size if numbers else 0

    def append(self, data: bytes) -> None:
        while data:
            number, filled = divmod(self.total, SIZE)
            part, data = data[: SIZE - filled], data[SIZE - filled :]
            append(self._path(number), part)
            self.total += len(part)
            if not filled and number > KEPT:
                with suppress(FileNotFoundError):
                    os.unlink(self._path(number - KEPT))

    def read(self, offset: int, most: int) -> Chunk:
        """Whole characters, as far as there are any; what is still to come of one is left for later."""
        asked = offset = min(offset, self.total)
        data = b""
        while offset < self.total and len(data) < most:
            number, place = divmod(offset, SIZE)
            part = self._part(number, place, most - len(data))
            if part:
                data += part
                offset += len(part)
            elif data or (later := self._after(number)) is None:
                break
            else:
                offset = later
        begin = offset - len(data)
        whole, _, back = trim(data, begin=False)
        if whole:
            data, offset = whole, offset - back
        return Chunk(data, begin, offset, self.total, begin - asked)

    def _after(self, number: int) -> int | None:
        """Where it goes on behind what is no longer kept."""
        return next((later * SIZE for later in self._numbers() if later > number), None)

    def _part(self, number: int, place: int, most: int) -> bytes:
        try:
            with open(self._path(number), "rb") as file:
                file.seek(place)
                return file.read(most)
        except OSError:
            return b""

    def tail(self, lines: int, most: int) -> Chunk:
        chunk = self.read(max(0, self.total - most), most)
        data, front, _ = trim(chunk.data, begin=chunk.offset > 0, end=False)
        kept = last_lines(data, lines)
        offset = chunk.offset + front + len(data) - len(kept)
        return Chunk(kept, offset, offset + len(kept), self.total, at=self._last_said())

    def _last_said(self) -> float | None:
        try:
            return os.stat(self._path((self.total - 1) // SIZE)).st_mtime if self.total else None
        except OSError:
            return None
