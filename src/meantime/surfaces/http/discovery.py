"""server.json: how other programs find the HTTP server. Private, whole or not there, gone after a graceful
stop.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from meantime.system.atomic_file import replace_file

FILE = "server.json"


class Discovery(msgspec.Struct, frozen=True, rename="camel"):
    port: int
    pid: int
    started_at: str
    url: str


def write(folder: Path, found: Discovery) -> Path:
    path = folder / FILE
    replace_file(path, msgspec.json.encode(found))
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
