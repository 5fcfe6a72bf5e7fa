"""server.json: how other programs find the door. Private, whole or not there, gone after a graceful stop."""

from __future__ import annotations

import contextlib
import os
import secrets
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
    new = folder / f".{FILE}.{secrets.token_hex(8)}"
    place = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(place, "wb") as file:
            file.write(msgspec.json.encode(found))
            file.flush()
            os.fsync(place)
        os.replace(new, path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return path


def remove(folder: Path, found: Discovery) -> None:
    """Only ours: somebody may have started after us."""
    path = folder / FILE
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        if msgspec.json.decode(path.read_bytes(), type=Discovery) == found:
            path.unlink()


def private_folder(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
