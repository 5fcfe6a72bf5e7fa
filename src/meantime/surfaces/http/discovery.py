"""server.json: how other programs find the HTTP server. Private, whole or not there, gone after a graceful
stop.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator
from pathlib import Path

import msgspec

FILE = "server.json"


class Discovery(msgspec.Struct, frozen=True, rename="camel"):
    port: int
    pid: int
    started_at: str
    url: str


def write(folder: Path, found: Discovery) -> Path:
    path = folder / FILE
    with drafted(path, msgspec.json.encode(found)) as new:
        os.replace(new, path)
    return path


@contextlib.contextmanager
def drafted(path: Path, data: bytes) -> Generator[Path]:
    """A private file beside `path`, whole and synced, to be put in its place: no crash leaves half of it."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    place = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(place, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(place)
        yield new
    finally:
        new.unlink(missing_ok=True)


def remove(folder: Path, found: Discovery) -> None:
    """Only ours: somebody may have started after us."""
    path = folder / FILE
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        if msgspec.json.decode(path.read_bytes(), type=Discovery) == found:
            path.unlink()


def private_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
