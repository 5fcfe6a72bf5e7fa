"""Files that are there whole or not at all, and that their owner alone can read.

The shims (`runners/shell/shim`) use none of this: each is a process of its own that loads as little as it
can, and its files change in place. Neither do the notes of `surfaces/caller/agent_sessions.py`: none of them
must last, and an agent waits for each.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from meantime.system.platform import sync_file

# For os.open: a file that was not there, and not what somebody's link leads to.
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_AGAIN = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
PRIVATE = 0o600


@contextmanager
def drafted(
    path: Path,
    fill: Callable[[BinaryIO], object],
    *,
    mode: int = PRIVATE,
    synced: bool = True,
    draft: str = "",
) -> Generator[Path]:
    """A whole file beside `path`, to be put in its place with os.replace or os.link; no crash leaves half of
    it there.

    `synced`: its bytes are on the disk, so that a power cut leaves the old file or the new one. `draft`: the
    draft's own name, for a file that has one writer: what a crash leaves behind is overwritten by the next.
    Without it the name is random, several may write at once, and a draft that is not moved is removed.
    """
    new = path.with_name(draft or f".{path.name}.{os.urandom(8).hex()}")
    fd = os.open(new, _AGAIN if draft else NEW_FILE, PRIVATE)
    try:
        with open(fd, "wb") as file:
            fill(file)
            file.flush()
            if mode != PRIVATE:
                os.fchmod(fd, mode)
            if synced:
                sync_file(fd)
        yield new
    finally:
        if not draft:
            new.unlink(missing_ok=True)


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode: int = PRIVATE,
    synced: bool = True,
    durable: bool = False,
    draft: str = "",
) -> None:
    """Puts `data` in place of the file, or makes it. `synced` and `draft` are those of `drafted`; `durable`:
    the new file is there even after a power cut that follows at once."""
    with drafted(path, lambda file: file.write(data), mode=mode, synced=synced, draft=draft) as new:
        os.replace(new, path)
    if durable:
        sync_folder(path.parent)


def make_file(path: Path, data: bytes) -> None:
    """Makes the file, private and on the disk, unless it is there: the file of whoever came first stays, and
    nobody ever sees half of one."""
    with drafted(path, lambda file: file.write(data)) as new:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _put(new, path, folder)
            with contextlib.suppress(OSError):  # where that cannot be, a power cut may cost the file
                sync_file(folder)
        finally:
            os.close(folder)


def _put(new: Path, path: Path, folder: int) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        return
    except OSError:  # this file system has no links: nobody has them here, and so everybody takes this lock
        fcntl.flock(folder, fcntl.LOCK_EX)
        if not os.path.lexists(path):
            new.rename(path)


def sync_folder(folder: Path) -> None:
    """The names in it are on the disk: without this a power cut may take a file that was written in full."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_file(fd)
    finally:
        os.close(fd)
