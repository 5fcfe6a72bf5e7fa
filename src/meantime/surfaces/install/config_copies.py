"""The copies that `install` leaves beside the files it changes, and which of them are still ours to remove.

A copy of an agent's file is in somebody else's folder, so it is removed only if it is what was written there.
The record of that is in our own home. A copy without a record, of an older version or of another person, is
removed only if nothing is lost with it: the file itself says the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from meantime.daemon.home import BadHome, Home
from meantime.surfaces.terminal.errors import FAILED, CliError
from meantime.system.atomic_file import replace_file

from .file_change import COPY, FileChange, read

MOST = 1_000  # copies on record


class Copies:
    def __init__(self, home: Home) -> None:
        self._home = home
        self._record = home.folder / "copies.json"

    def wrote(self, change: FileChange) -> None:
        """The copy of this change is on disk now. Without a record it is a copy like an older version's."""
        if change.before is None or change.own is not None:  # no copy is made then
            return
        try:
            self._home.make()
            known = {**self._known(), str(copy_of(change)): _digest(change.before)}
            replace_file(self._record, json.dumps(dict(list(known.items())[-MOST:]), indent=1).encode())
        except (OSError, BadHome):
            return

    def ours(self, changes: Sequence[FileChange]) -> tuple[list[Path], list[Path]]:
        """Beside these files: the copies to remove, and those that stay because somebody changed them."""
        found = [(change, copy_of(change)) for change in changes if copy_of(change).is_file()]
        known = self._known()
        removed = [path for change, path in found if self._is_ours(change, path, known)]
        return removed, [path for _, path in found if path not in removed]

    def needless(self, change: FileChange) -> list[Path]:
        """The copy beside this file, if the file says the same after the change."""
        path = copy_of(change)
        try:
            return [path] if path.is_file() and read(path) == change.after else []
        except CliError:
            return []

    def _is_ours(self, change: FileChange, path: Path, known: dict[str, Any]) -> bool:
        try:
            text = read(path) or ""
        except CliError:  # it is not a text any more
            return False
        if str(path) in known:
            return known[str(path)] == _digest(text)
        return text in (change.before, change.after)

    def remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as problem:
            what = f"{path} could not be removed: {problem.strerror}."
            raise CliError(what, "Everything else is taken out; remove it yourself.", FAILED) from problem

    def _known(self) -> dict[str, Any]:
        try:
            found: Any = json.loads(self._record.read_bytes())
        except (OSError, ValueError):
            return {}
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def copy_of(change: FileChange) -> Path:
    """Beside the file itself, even where an agent's folder has a link to it."""
    path = Path(os.path.realpath(change.path))
    return path.with_name(path.name + COPY)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
