"""Events of a command at a worker: files in a folder of its own, until the worker has passed each on.

`meantime notify` leaves one there, and the worker takes one after the other. Both may be killed at any
moment: the file stays, and the worker's next life goes on with the number that it had.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import time
from pathlib import Path

from .atomic_file import replace_file

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

VARIABLE = "MEANTIME_EVENTS"  # the folder, in the environment of a command at a worker
MOST_WAITING = 100  # events of one command
MOST_BYTES = 400_000  # of one event
KEPT = 60.0  # seconds that an answer waits for whoever asked
_EVENT, _ANSWER, _NUMBER, _OVER = ".event", ".answer", "number", "over"
# A file with one of these is none that `leave` has left: it is gone, a link, a socket, or nobody may read it.
_NO_EVENT = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM}
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


# -- the command's side


def leave(folder: Path, text: str) -> str:
    """The name of the event. Raises OSError; BlockingIOError if too many wait already."""
    if (folder / _OVER).exists():
        raise FileNotFoundError("its task has ended")
    if sum(name.endswith(_EVENT) for name in os.listdir(folder)) >= MOST_WAITING:
        raise BlockingIOError(f"{MOST_WAITING} events wait")
    name = f"{time.monotonic_ns():020}-{os.urandom(4).hex()}"  # their order
    replace_file(folder / f"{name}{_EVENT}", text.encode(errors="replace"), synced=False)
    return name


def answer_to(folder: Path, name: str) -> dict[str, Any] | None:
    """The worker's answer, once there is one."""
    is_over = not folder.is_dir() or (folder / _OVER).exists()
    path = folder / f"{name}{_ANSWER}"
    try:
        answer = json.loads(path.read_bytes())
    except FileNotFoundError:  # it came after the worker had looked for the last time
        return {"error": "The task of this command has ended.", "hint": ""} if is_over else None
    path.unlink(missing_ok=True)
    return answer


# -- the worker's side


class EventSpool:
    """Each event has a number. That of the event which is on its way is written down before it is sent, so
    that the next life of the worker repeats it under the same one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._last: tuple[int, str] | None = None  # number and name of the event that was sent last

    def make(self) -> None:
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def first(self) -> tuple[int, str, str] | None:
        """Number, name and text of the event that is to be sent now. Raises OSError, as for too many open
        files: the event stays, and none behind it is taken before it."""
        for name in self._names():
            text = self._text(name)
            if text is not None:
                return self._number(name), name, text
        return None

    def left(self) -> list[tuple[int, str, str]]:
        """The same of all that wait, at the end of the command. `close` follows. Raises OSError."""
        texts = {name: text for name in self._names() if (text := self._text(name)) is not None}
        last, flying = self._sent()
        first = last if flying in texts else last + 1
        return [(number, *event) for number, event in enumerate(texts.items(), first)]

    def close(self, names: Iterable[str], answer: dict[str, Any]) -> None:
        """These events are with the ending, which is written down. No other is taken."""
        for name in names:
            self.answer(name, answer)
        with contextlib.suppress(OSError):
            (self.folder / _OVER).touch(0o600)

    def answer(self, name: str, answer: dict[str, Any]) -> None:
        self._sweep()
        with contextlib.suppress(OSError):  # a full disk: whoever asked waits no longer than he would anyway
            data = json.dumps(answer).encode()
            replace_file(self.folder / f"{name}{_ANSWER}", data, synced=False)
        self._remove(name)

    def _names(self) -> list[str]:
        """The one that is on its way first, the others in their order."""
        try:
            found = [name.removesuffix(_EVENT) for name in os.listdir(self.folder) if name.endswith(_EVENT)]
        except FileNotFoundError:
            return []
        _, flying = self._sent()
        return sorted(found, key=lambda name: (name != flying, name))[:MOST_WAITING]

    def _text(self, name: str) -> str | None:
        """None, and it is removed, if this is not a text that somebody left: it is the command's folder.
        Raises OSError where it cannot be read now."""
        try:
            fd = os.open(self.folder / f"{name}{_EVENT}", _READ)
        except OSError as problem:
            if problem.errno not in _NO_EVENT:
                raise
            self._remove(name)
            return None
        try:
            found = os.fstat(fd)
            if stat.S_ISREG(found.st_mode) and found.st_size <= MOST_BYTES:
                return os.read(fd, MOST_BYTES).decode(errors="replace")
        finally:
            os.close(fd)
        self._remove(name)
        return None

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / f"{name}{_EVENT}").unlink()

    def _number(self, name: str) -> int:
        number, flying = self._sent()
        if name != flying:
            number += 1
            replace_file(self.folder / _NUMBER, f"{number} {name}".encode(), synced=False)
            self._last = number, name
        return number

    def _sent(self) -> tuple[int, str]:
        if self._last is None:
            try:
                number, _, name = (self.folder / _NUMBER).read_text().partition(" ")
                self._last = int(number), name
            except (FileNotFoundError, ValueError):
                self._last = 0, ""
        return self._last

    def _sweep(self) -> None:
        """Answers that nobody has taken: who asked was killed."""
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.name.endswith(_ANSWER) and time.time() - entry.stat().st_mtime > KEPT:
                    os.unlink(entry.path)
