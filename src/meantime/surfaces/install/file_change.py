"""Files of other programs: read, shown as a difference, replaced in one step, with a copy of what was."""

from __future__ import annotations

import difflib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from meantime.surfaces.terminal.errors import FAILED, CliError
from meantime.system.atomic_file import replace_file

MOST = 50_000_000  # bytes
COPY = ".before-meantime"  # the end of the copy's name


class FileChange(NamedTuple):
    """One file, before and after; None means that there is no file."""

    path: Path
    before: str | None
    after: str | None
    private: bool = False  # what stands around the change is not shown
    own: Path | None = None  # a folder of ours alone, which goes with its last file

    @property
    def is_one(self) -> bool:
        return self.before != self.after

    def shown(self) -> str:
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            (self.after or "").splitlines(keepends=True),
            "/dev/null" if self.before is None else str(self.path),
            "/dev/null" if self.after is None else str(self.path),
            n=0 if self.private else 2,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self, *, copy: bool = True) -> None:
        """As it was shown, or not at all. A link stays a link: what it points to is replaced."""
        path = Path(os.path.realpath(self.path))
        if read(path) != self.before:
            raise CliError(f"{path} was changed in the meantime.", "Run it again.", FAILED)
        try:
            if copy and self.before is not None and self.own is None:
                replace_file(path.with_name(path.name + COPY), self.before.encode(), mode=_mode(path))
            if self.after is None:
                path.unlink()
                self._remove_empty(path.parent)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, self.after.encode(), mode=_mode(path))
        except OSError as problem:
            what = f"{path} could not be written: {problem.strerror}."
            raise CliError(what, "Nothing of it was changed.", FAILED) from problem

    def _remove_empty(self, folder: Path) -> None:
        own = self.own and Path(os.path.realpath(self.own))
        with suppress(OSError):  # it is not empty
            while own and folder.is_relative_to(own):
                folder.rmdir()
                folder = folder.parent


def read(path: Path) -> str | None:
    try:
        if path.stat().st_size > MOST:
            raise CliError(f"{path} is too large.", "", FAILED)
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8.", "Mend it first; it was not touched.", FAILED) from None
    except OSError as problem:
        raise CliError(f"{path} cannot be read: {problem.strerror}.", "", FAILED) from problem


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o600
