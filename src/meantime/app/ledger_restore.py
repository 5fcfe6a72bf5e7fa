"""Restoring a backup: into a place where there is no ledger, whole or not at all.

The result is a copy: everything that ran when the backup was made belongs to the original, so it is lost
here, and told, when the ledger is opened.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from meantime.kernel.errors import InvalidInput, LedgerBusy
from meantime.stores.sqlite.ledger_lock import Lock
from meantime.system.atomic_file import sync_folder

from . import backup_archive
from .backup_archive import BESIDE, LEDGER
from .ledger_backup import BackupSummary, account_of

OURS = ("", "-wal", *BESIDE)  # what a ledger has beside it
LEFT = (".lock", ".mark", ".reserve", "-wal", "-shm")  # beside a ledger that is gone: nothing of it
HARMLESS = {"daemon.log", "daemon.log.1", "starting.lock", "token", "hooks"}  # in a home without a ledger


def restore(file: Path, ledger: Path, *, is_home: bool) -> BackupSummary:
    """`is_home`: the folder is the ledger's alone. Raises MeantimeError, and OSError for the disk."""
    file, ledger = file.absolute(), ledger.resolve()
    if not file.is_file():
        raise InvalidInput(f"There is no file {file}.", hint="Name one that `meantime backup` wrote.")
    ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(ledger) as lock, _stage(ledger) as stage:
        _check_empty(ledger, stage, is_home=is_home)
        backup_archive.read(file, stage)
        account = account_of(stage / LEDGER)
        os.sync()  # before it has its name, and once for all of its files
        lock.disown()
        for ending in ("-wal", "-shm", ".mark"):  # of the ledger that was here before
            Path(f"{ledger}{ending}").unlink(missing_ok=True)
        _move_in(stage, ledger)
    return account


@contextmanager
def _locked(ledger: Path) -> Generator[Lock]:
    """So that nobody opens what is not there yet."""
    lock = Lock(ledger)
    was_there = lock.path.exists()
    try:
        lock.take()
    except LedgerBusy as problem:
        hint = "Stop its owner first: `meantime down`. Or restore elsewhere: set MEANTIME_HOME."
        raise LedgerBusy(problem.message, hint=hint) from None
    done = False
    try:
        yield lock
        done = True
    finally:
        if not done and not was_there:
            lock.path.unlink(missing_ok=True)
        lock.drop()


def _check_empty(ledger: Path, stage: Path, *, is_home: bool) -> None:
    folder = ledger.parent
    there = [f"{ledger.name}{ending}" for ending in OURS if os.path.lexists(f"{ledger}{ending}")]
    if there == [f"{ledger.name}-wal"] and not os.path.getsize(f"{ledger}-wal"):
        there = []  # whoever reads a ledger that is closed leaves an empty one
    if there:
        raise InvalidInput(
            f"There is a ledger in {folder} already: {', '.join(there)}.",
            hint=f"Keep it elsewhere first: mv {folder} {folder}.before",
            code="not_empty",
        )
    ours = {f"{ledger.name}{ending}" for ending in LEFT} | {stage.name, *HARMLESS}
    aside = {path.name for path in folder.glob(f"{ledger.name}.*ed-*")}  # ledgers that were damaged
    others = sorted(set(os.listdir(folder)) - ours - aside)
    if is_home and others:
        raise InvalidInput(
            f"{folder} is not empty: {', '.join(others[:5])}.",
            hint="Restore into an empty folder: set MEANTIME_HOME to one.",
            code="not_empty",
        )


@contextmanager
def _stage(ledger: Path) -> Generator[Path]:
    for left in ledger.parent.glob(f"{ledger.name}.restoring-*"):  # of a restore that was killed
        shutil.rmtree(left, ignore_errors=True)
    stage = Path(f"{ledger}.restoring-{secrets.token_hex(6)}")
    try:
        stage.mkdir(mode=0o700)
        yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _move_in(stage: Path, ledger: Path) -> None:
    """The database last: until it is there, nothing was restored. Leftovers of a failure are removed."""
    moved: list[Path] = []
    try:
        for ending in (*BESIDE, ""):
            part, place = stage / f"{LEDGER}{ending}", Path(f"{ledger}{ending}")
            if part.exists():
                os.rename(part, place)
                moved.append(place)
        sync_folder(ledger.parent)
    except BaseException:
        for place in moved:
            with suppress(OSError):
                shutil.rmtree(place) if place.is_dir() else place.unlink()
        raise
