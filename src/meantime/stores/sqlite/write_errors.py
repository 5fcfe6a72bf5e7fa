"""Words for whoever asked for a write that failed, from what SQLite says of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from meantime.kernel.errors import Degraded, LedgerDamaged, LedgerError, MeantimeError

from .salvage import is_damage

_SYNC_ERRORS = (sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC)


def is_full(problem: sqlite3.Error) -> bool:
    return problem.sqlite_errorcode == sqlite3.SQLITE_FULL if hasattr(problem, "sqlite_errorcode") else False


def is_failed_sync(problem: Exception) -> bool:
    return getattr(problem, "sqlite_errorcode", 0) in _SYNC_ERRORS


def translate(problem: sqlite3.Error, path: Path) -> MeantimeError:
    if is_full(problem):
        return disk_full()
    if is_damage(problem):
        return LedgerDamaged(
            f"The ledger {path} is damaged: {problem}.",
            hint="Close and open it again: it is set aside and you are told what can be saved.",
        )
    hint = "Look at the disk and at who else uses the file, then try again."
    return LedgerError(f"The ledger {path} cannot be used now: {problem}.", hint=hint)


def disk_full() -> Degraded:
    return Degraded(
        "The disk is full: nothing new is started; endings are still recorded.", hint="Free some space."
    )


def sync_failed() -> Degraded:
    return Degraded(
        "The disk failed to sync: nothing is recorded until it does.",
        hint="Look at the disk (the kernel's log says what failed), then try again.",
    )


def maybe_written() -> LedgerError:
    """A refusal would say that it is not there; but a dying disk may have its frames."""
    text = "The disk failed to sync, and to take the write back: it may be recorded or not."
    return LedgerError(text, hint="Look at the disk, open the ledger again, and see whether it is there.")
