"""A command's output on its way to ours: raw into files and pipes, harmless on a terminal."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Protocol, TextIO

from .speaking import Daemon, part

_SGR = r"\x1b\[[0-9;:]*m"
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?)?\Z")
_LONGEST = 4096  # characters of a sequence that does not end, before it is given up
# Every sequence; colours come first, and are kept.
_OBEYED = re.compile(
    f"({_SGR})"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|[\x1b][\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)


class Sink(Protocol):
    def write(self, data: bytes) -> None: ...

    def end(self) -> None: ...


def sink(stream: TextIO, *, raw: bool) -> Sink:
    return Harmless(stream) if stream.isatty() and not raw else Raw(stream)


class Raw:
    """Byte for byte."""

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._to = stream.buffer if hasattr(stream, "buffer") else None

    def write(self, data: bytes) -> None:
        if self._to is not None:
            self._to.write(data)
            self._to.flush()

    def end(self) -> None:
        """Nothing was held back."""


class Harmless:
    """Text, new lines, tabs, carriage returns and colours; nothing else that a terminal would obey."""

    def __init__(self, stream: TextIO) -> None:
        self._to = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._coloured = False

    def write(self, data: bytes, *, final: bool = False) -> None:
        text = self._held + self._decoder.decode(data, final)
        self._held = ""
        cut = None if final else _UNFINISHED.search(text)
        if cut is not None and len(text) - cut.start() <= _LONGEST:
            text, self._held = text[: cut.start()], text[cut.start() :]
        safe = _OBEYED.sub(lambda found: found[1] or "", text)
        self._coloured = self._coloured or "\x1b[" in safe
        self._to.write(safe)
        self._to.flush()

    def end(self) -> None:
        self.write(b"", final=True)
        if self._coloured:
            self._to.write("\x1b[0m")
            self._to.flush()


class Position:
    """How far a stream was read: what goes on after the daemon came back begins here."""

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset


def follow(daemon: Daemon, id: str, stream: str, at: Position, to: Sink) -> None:
    """Copies what the task says until it has ended. After a Gone it can be called again."""
    path = f"/v1/tasks/{part(id)}/output"
    with daemon.stream(path, stream=stream, follow=1, offset=at.offset) as answer:
        while data := answer.read1(1 << 16):
            at.offset += len(data)
            to.write(data)


def one_place() -> bool:
    """Whether stdout and stderr go to the same place, where only the order of both is right."""
    import os

    try:
        out, err = os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return True
    return (out.st_dev, out.st_ino, out.st_rdev) == (err.st_dev, err.st_ino, err.st_rdev)
