"""What is said in a task's session, on disk as it is said: lines for machines, and a text for people."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from meantime.kernel.conversation import Kind, Line, spoken
from meantime.kernel.payloads import escape_surrogates, short
from meantime.ports.clock import Clock

from .segments import Segments

MOST = 64 << 20  # bytes of lines; beyond, what tools answered is cut short
LINE = 256 << 10  # characters of one line's text
SHOWN = 2_000  # of a tool's answer in the text for people
CUT = " […]"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class Journal:
    def __init__(self, folder: Path, clock: Clock, run: int) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = folder / "lines.jsonl"
        self._clock = clock
        self._run = run
        self._text = Segments(folder, "text")
        self._open = ""  # what was said and not ended with a line break
        self._size = self._file.stat().st_size if self._file.exists() else 0
        self.changed = asyncio.Event()

    def line(self, line: Line) -> None:
        most = LINE if self._size < MOST else 0
        text = escape_surrogates(line.text)
        if len(text) > most and line.kind is Kind.RESULT:
            text = text[:most] + CUT
        line = replace(line, text=text, at=line.at or self._clock.now(), run=self._run)
        self._append(_encode(line) + b"\n")
        self._show(line)

    def _append(self, data: bytes) -> None:
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, data)
        finally:
            os.close(fd)
        self._size += len(data)

    def _show(self, line: Line) -> None:
        """What came in pieces is there already, and is not shown twice."""
        text = spoken(line)
        if line.role == "assistant" and line.kind is Kind.TEXT and self._open:
            text = text.removeprefix(self._open) if text.startswith(self._open) else ""
            self.said(f"{text}\n")
            self._open = ""
            return
        if line.kind is not Kind.TEXT and len(text) > SHOWN:
            text = text[:SHOWN] + CUT
        self._open = ""
        self._say(f"{text}\n")

    def said(self, text: str) -> None:
        self._open += text
        self._say(text)

    def _say(self, text: str) -> None:
        self._text.append(escape_surrogates(text).encode())
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def total(self) -> int:
        return self._text.total

    def sync(self) -> None:
        """Also over a power cut: at the end of a turn."""
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def lines(folder: Path) -> Sequence[Line]:
    """As far as they can be read: a last one that was cut by a crash is left out."""
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


def brief(line: Line) -> Line:
    return replace(line, text=str(short(line.text)))
