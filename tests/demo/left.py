"""What a demo left behind. It was given a folder for temporary files, which all that it starts inherits."""

from __future__ import annotations

import os
from pathlib import Path

from tests.waiting import until


def running(folder: Path) -> list[str]:
    """The processes that were told to use this folder, or that are in it; by their command lines."""
    mark = b"TMPDIR=" + os.fsencode(folder)
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            inside = Path(os.readlink(entry / "cwd")).is_relative_to(folder)
            if inside or mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it is gone, or a stranger's
    return found


def nothing(folder: Path) -> None:
    """No process, no file. A supervisor may need a moment to notice that its command is gone."""
    until(lambda: not running(folder), "nothing runs any more", there=lambda: running(folder))
    assert list(folder.iterdir()) == []
