"""The conversation of a task's session, on disk as it comes: lines for machines, and a text for people."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from meantime.kernel.lines import Kind, Line, LinePage, PlacedLine, spoken, storable
from meantime.kernel.plain_text import escape_surrogates
from meantime.ports.clock import Clock
from meantime.system.append_file import append
from meantime.system.platform import sync_file

from .segmented_log import Segments

MOST = 64 << 20  # bytes of lines; beyond, each is cut to its beginning
END = 2 * MOST  # and beyond this none is kept
LINE = 256 << 10  # characters of one line's text
BRIEF = 500
SHOWN = 2_000  # of a tool's answer in the text for people
CUT = " […]"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class SessionLog:
    def __init__(self, folder: Path, clock: Clock, run: int, *, again: bool = False) -> None:
        """`again`: a former owner may have kept lines of this run, that its host will tell once more."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = folder / "lines.jsonl"
        self._clock = clock
        self._run = run
        self._text = Segments(folder, "text")
        self._said = ""  # of a message that comes in pieces: what has come, as far as it is compared
        self._coming = False
        self._size = self._mend()
        before = lines(folder) if again else ()
        self._kept = {line.id for line in before if line.run == run and line.id}
        self.changed = asyncio.Event()

    def _mend(self) -> int:
        """A line that a crash cut in two is ended: what follows is a line of its own."""
        try:
            with self._file.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                if not size:
                    return 0
                file.seek(-1, os.SEEK_END)
                whole = file.read(1) == b"\n"
        except FileNotFoundError:
            return 0
        if not whole:
            append(self._file, b"\n")
        return size + (not whole)

    def has(self, id: str) -> bool:
        """Whether a former owner of this run has kept it."""
        return bool(id) and id in self._kept

    def line(self, line: Line) -> Line:
        """As it is kept. One whose id was kept before a restart is not kept twice."""
        if self.has(line.id):
            return line
        most = LINE if self._size < MOST else BRIEF
        line = storable(line, at=self._clock.now(), run=self._run)
        if len(line.text) > most:
            line = replace(line, text=line.text[:most] + CUT)
        if self._size < END:
            data = _encode(line) + b"\n"
            append(self._file, data)
            self._size += len(data)
        self._show(line)
        return line

    def _show(self, line: Line) -> None:
        """Text that came in pieces is there already, and is not shown twice."""
        text, pieces, coming = spoken(line), self._said, self._coming
        self._said, self._coming = "", False
        if line.kind is Kind.THOUGHT:
            return
        if coming and line.role == "assistant" and line.kind is Kind.TEXT:
            rest = text[len(pieces) :] if text.startswith(pieces) else f"\n{text}"
            self._say(f"{rest}\n")
            return
        if line.kind is not Kind.TEXT and len(text) > SHOWN:
            text = text[:SHOWN] + CUT
        self._say(f"\n{text}\n" if coming else f"{text}\n")

    def said(self, text: str) -> None:
        text = escape_surrogates(text)
        self._coming = True
        if len(self._said) <= LINE:
            self._said += text
        self._say(text)

    def _say(self, text: str) -> None:
        self._text.append(text.encode())
        self.stir()

    def stir(self) -> None:
        """Waiting readers look again."""
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def total(self) -> int:
        return self._text.total

    def sync(self) -> None:
        """Also over a power cut."""
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            sync_file(fd)
        finally:
            os.close(fd)


def lines(folder: Path) -> Sequence[Line]:
    """As far as they can be read: one that was cut by a crash is left out."""
    try:
        data = (folder / "lines.jsonl").read_bytes()
    except OSError:
        return []
    found: list[Line] = []
    for part in data.split(b"\n"):
        try:
            found.append(_decode(part))
        except msgspec.MsgspecError:
            continue
    return found


def page(folder: Path, offset: int, most: int) -> LinePage:
    """Whole lines from this byte on, or from the next line where it is inside one; below 0 from the end."""
    try:
        with (folder / "lines.jsonl").open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begin = min(size, offset if offset >= 0 else max(0, size + offset))
            if begin:
                file.seek(begin - 1)
                begin += len(file.readline()) - 1
            file.seek(begin)
            data = file.read(most)
    except OSError:
        return LinePage((), 0, 0, 0)
    found: list[PlacedLine] = []
    place = begin
    for part in data.split(b"\n")[:-1]:  # the last is still being written, or comes with the next page
        with suppress(msgspec.MsgspecError):
            found.append(PlacedLine(place, _decode(part)))
        place += len(part) + 1
    return LinePage(tuple(found), begin, place, size)


def said_last(folder: Path, run: int) -> str:
    """The agent's text in a run whose end nobody has received."""
    own = [line for line in lines(folder) if line.run == run and line.role == "assistant"]
    return "\n\n".join(line.text for line in own if line.kind is Kind.TEXT and line.text)
