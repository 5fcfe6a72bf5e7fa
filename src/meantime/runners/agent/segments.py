"""A text that grows: its beginning and its end are kept, by absolute offset, in files of one size."""

from __future__ import annotations

import os
from pathlib import Path

from meantime.kernel.model import Chunk

SIZE = 1 << 20  # bytes of a segment
KEPT = 4  # segments at the end, beside the first


class Segments:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.total = self._measure()

    def _path(self, number: int) -> Path:
        return self._folder / f"{self._name}.{number}"

    def _numbers(self) -> list[int]:
        found = self._folder.glob(f"{self._name}.*")
        return sorted(int(path.suffix[1:]) for path in found if path.suffix[1:].isdigit())

    def _measure(self) -> int:
        numbers = self._numbers()
        return numbers[-1] * SIZE + self._path(numbers[-1]).stat().st_size if numbers else 0

    def append(self, data: bytes) -> None:
        while data:
            number, filled = divmod(self.total, SIZE)
            part, data = data[: SIZE - filled], data[SIZE - filled :]
            fd = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, part)
            finally:
                os.close(fd)
            self.total += len(part)
            if not filled and number > KEPT:
                self._path(number - KEPT).unlink(missing_ok=True)

    def read(self, offset: int, most: int) -> Chunk:
        asked = offset = min(offset, self.total)
        data = b""
        while offset < self.total and len(data) < most:
            number, place = divmod(offset, SIZE)
            part = self._part(number, place, most - len(data))
            if not part:
                if data:
                    break
                kept = [known for known in self._numbers() if known > number]
                offset = asked_from = kept[0] * SIZE if kept else self.total
                if asked_from == self.total:
                    break
                continue
            data += part
            offset += len(part)
        begin = offset - len(data)
        return Chunk(data, begin, offset, self.total, begin - asked)

    def _part(self, number: int, place: int, most: int) -> bytes:
        try:
            with self._path(number).open("rb") as file:
                file.seek(place)
                return file.read(most)
        except OSError:
            return b""

    def tail(self, lines: int, most: int) -> Chunk:
        chunk = self.read(max(0, self.total - most), most)
        ends = [place for place, byte in enumerate(chunk.data) if byte == 10 and place < len(chunk.data) - 1]
        if len(ends) < lines:
            return chunk if chunk.offset == 0 or not ends else _from(chunk, ends[0] + 1)
        return _from(chunk, ends[-lines] + 1)


def _from(chunk: Chunk, place: int) -> Chunk:
    return Chunk(chunk.data[place:], chunk.offset + place, chunk.next, chunk.total)
