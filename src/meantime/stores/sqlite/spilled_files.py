"""Payloads over the limits, in files beside the ledger."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from msgspec.structs import replace

from meantime.kernel.errors import LedgerError
from meantime.kernel.model import Task
from meantime.system.atomic_file import NEW_FILE, sync_folder
from meantime.system.platform import sync_data


class Spills:
    """Payloads over the limits, one private file each. Names are random: no id ever forms a path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, payload: bytes) -> str:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / f"{secrets.token_hex(12)}.txt"
        fd = os.open(path, NEW_FILE, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(payload)
            file.flush()
            sync_data(file.fileno())
        sync_folder(self.folder)  # otherwise a power cut could take its name, which the ending points to
        return str(path)

    def read(self, path: str) -> bytes:
        if Path(path).parent != self.folder:
            raise LedgerError(f"{path} is not a spilled payload of this ledger.")
        return Path(path).read_bytes()

    def remove(self, path: str) -> None:
        if Path(path).parent == self.folder:
            Path(path).unlink(missing_ok=True)


class MovedPayloads:
    """Payloads are beside their ledger. A task names them by their whole path: when the ledger was moved,
    copied or restored, that path is the one of old."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = str(ledger)

    def found(self, task: Task) -> Task:
        """The task, with the path at which its payload lies now."""
        outcome = task.outcome
        if outcome is None or outcome.spill is None:
            return task
        ending = ".commands" if outcome.spill.of_runner else ".files"
        folder, _, name = outcome.spill.path.rpartition("/")
        if folder == self._ledger + ending or not folder.endswith(ending):
            return task
        spill = replace(outcome.spill, path=f"{self._ledger}{ending}/{name}")
        return replace(task, outcome=replace(outcome, spill=spill))
