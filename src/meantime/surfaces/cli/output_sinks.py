"""A command's output on its way to ours: raw into files and pipes, harmless on a terminal."""

from __future__ import annotations

import binascii
import codecs
import json
import os
import re
import sys

from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import STRAY_JOINER

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from typing import Any, Protocol, TextIO

    class Sink(Protocol):
        def write(self, data: bytes) -> None: ...

        def end(self) -> None: ...
else:
    Sink = object

_SGR = r"\x1b\[[0-9;:]*m"
_UNFINISHED = r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*|[\]PX^_][^\x07\x1b\x9c]*\x1b?)?\Z"
_LONGEST = 4096  # characters of a sequence that does not end, before it is given up
# Every sequence; colours come first, and are kept.
_OBEYED = (
    f"({_SGR})"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|[\x1b][\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
    f"|{STRAY_JOINER}"
)


def sink(stream: TextIO, *, raw: bool) -> Sink:
    return Harmless(stream) if stream.isatty() and not raw else Raw(stream)


class Raw:
    """Byte for byte, past the buffers of Python: two threads may write, and one may be interrupted."""

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        self._to = stream.fileno()

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._to, left) :]

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
        cut = None if final else re.search(_UNFINISHED, text)
        if cut is not None and len(text) - cut.start() <= _LONGEST:
            text, self._held = text[: cut.start()], text[cut.start() :]
        safe = re.sub(_OBEYED, lambda found: found[1] or "", text)
        self._coloured = self._coloured or "\x1b[" in safe
        self._to.write(safe)
        self._to.flush()

    def end(self) -> None:
        self.write(b"", final=True)
        if self._coloured:
            self._to.write("\x1b[0m")
            self._to.flush()


class Copy:
    """One stream on its way, and how far it was read: what goes on after the daemon came back begins
    there. A gap is reported beside it, and never makes one line of two."""

    def __init__(self, to: Sink, offset: int = 0) -> None:
        self.offset = offset
        self._to = to
        self._open_line = False

    def take(self, piece: dict[str, Any], *, silent: bool = False) -> None:
        data = binascii.a2b_base64(piece["dataBase64"])
        if piece["lostBytes"] and not silent:
            if self._open_line:
                self._to.write(b"\n")
                self._open_line = False
            echo(f"meantime: {piece['lostBytes']} bytes were not kept here.", err=True)
        if data:
            self._to.write(data)
            self._open_line = not data.endswith(b"\n")
        self.offset = piece["next"]

    def end(self) -> None:
        self._to.end()


def follow(daemon: Daemon, id: str, stream: str, copy: Copy) -> None:
    """Copies what the task says until it has ended. After a Gone it can be called again."""
    path = f"/v1/tasks/{part(id)}/output"
    with daemon.stream(path, stream=stream, follow=1, format="chunks", offset=copy.offset) as answer:
        while line := answer.line():
            copy.take(json.loads(line))


def one_place() -> bool:
    """Whether stdout and stderr go to the same place, where only the order of both is right."""
    try:
        out, err = os.fstat(sys.stdout.fileno()), os.fstat(sys.stderr.fileno())
    except (OSError, ValueError):
        return True
    return (out.st_dev, out.st_ino, out.st_rdev) == (err.st_dev, err.st_ino, err.st_rdev)
