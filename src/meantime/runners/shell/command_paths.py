"""Where commands keep their files: side by side in one folder beside the ledger.

No id is ever part of a path: a command is named by a hash of its task, run and attempt, so that a
later owner finds it without having to be told.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from meantime.kernel.model import Task
from meantime.system.atomic_file import NEW_FILE
from meantime.system.platform import boot, is_this_boot

from . import provenance
from .shim import cells

MOST_RUNS = 20  # and attempts, that are tried for the name of a place


def _name(id: str, run: int, attempt: int) -> str:
    return hashlib.sha256(f"{id}\0{run}\0{attempt}".encode()).hexdigest()[: cells.NAME_LENGTH]


class Places:
    """A command's base is a path without an ending; its files are the base with the endings of cells.py."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self.lasts = root is not None
        self.same_boot = False  # the machine has not been restarted since the files were made

    @property
    def root(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="meantime-"))
        return self._root

    def open(self) -> None:
        """After a restart of the machine a state can say how its command ended, but no longer that it
        never began: what it held may not have reached the disk."""
        if self._root is None or not self._root.is_dir():
            return
        mark = self._root / "boot"
        with contextlib.suppress(OSError):
            self.same_boot = is_this_boot(mark.read_text())
        if not self.same_boot:
            mark.write_text(boot())

    def close(self) -> None:
        """Nothing is left of a ledger that forgets."""
        if not self.lasts and self._root is not None:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    def events(self) -> Path:
        """The pipe in which all shims tell their owner what happens."""
        pipe = self.root / cells.EVENTS_PIPE
        self._make_root()
        with contextlib.suppress(FileExistsError):
            os.mkfifo(pipe, 0o600)
        return pipe

    def of(self, task: Task, attempt: int | None = None) -> Path:
        return self.root / _name(task.id, task.run.number, attempt or task.run.attempt)

    def is_of(self, base: Path, id: str) -> bool:
        """Whether this is the place of a task with this id: a damaged state may name another one."""
        numbers = range(1, MOST_RUNS + 1)
        return any(base.name == _name(id, run, attempt) for run in numbers for attempt in numbers)

    def make(self, task: Task) -> None:
        """Before the task is recorded: then a state that no shim has taken means that it never began."""
        base = self.of(task)
        try:
            fd = os.open(f"{base}{cells.STATE_FILE}", NEW_FILE, 0o600)
        except FileExistsError:  # of a start that was never recorded
            self.remove(base)
            fd = os.open(f"{base}{cells.STATE_FILE}", NEW_FILE, 0o600)
        except FileNotFoundError:
            self._make_root()
            fd = os.open(f"{base}{cells.STATE_FILE}", NEW_FILE, 0o600)
        try:  # all of it now: a full disk is met here, not by the shim
            os.write(
                fd, provenance.written(fd, self.root) + task.id.encode().ljust(cells.SIZE - cells.ID, b"\0")
            )
        finally:
            os.close(fd)

    def _make_root(self) -> None:
        """Ours alone: whoever could write there could order our shims about."""
        if not self.root.is_dir():
            self.root.mkdir(mode=0o700, parents=True)
            (self.root / "boot").write_text(boot())
        found = os.stat(self.root)
        if found.st_uid != os.getuid():
            raise PermissionError(f"{self.root} belongs to another user")
        if found.st_mode & 0o077:
            os.chmod(self.root, 0o700)

    def remove(self, base: Path) -> None:
        """The state last: what a kill leaves can still be told from files whose state was lost."""
        for kind in reversed(cells.FILES):
            with contextlib.suppress(OSError):
                os.unlink(f"{base}{kind}")

    def holds(self, path: Path) -> bool:
        return self._root is not None and path.parent == self._root

    def all(self) -> Iterator[tuple[Path, str]]:
        """The base of every command that has files here, with the id of its task."""
        if self._root is None or not self._root.is_dir():
            return
        for name in sorted(
            {Path(name).stem for name in os.listdir(self._root) if name.endswith(cells.FILES)}
        ):
            base, id = self._root / name, ""
            with contextlib.suppress(OSError, UnicodeDecodeError):
                state = Path(f"{base}{cells.STATE_FILE}").read_bytes()
                id = state[cells.ID :].partition(b"\0")[0].decode()
            yield base, id
