"""Backing up a ledger, with or without an owner: one consistent view of it, in one file.

A folder beside the ledger becomes a copy of it: the database as SQLite copies it in one read transaction, and
hard links to the files beside it. These are laid before the database is read, so that nothing which it names
can be removed under us, and once more afterwards, for what came meanwhile. The copy is audited, packed and
read again; only then the backup has its name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from meantime import __version__
from meantime.kernel.errors import InvalidInput, LedgerDamaged
from meantime.runners.shell import provenance
from meantime.runners.shell.command_paths import Places
from meantime.runners.shell.shim import cells
from meantime.system.atomic_file import NEW_FILE, drafted, sync_folder

from . import backup_archive
from .backup_archive import BESIDE, LEDGER, ArchiveHead
from .ledger_audit import Finding, damage, readable
from .read_only_ledger import check_schema, read_only

TRIES = 3  # where a payload was removed in the moment between two looks
ACTIVE = "('queued', 'running', 'waiting', 'cancelling')"
_NO_LINKS = {errno.EPERM, errno.EXDEV, errno.EMLINK, errno.ENOTSUP, errno.EACCES}


class BackupSummary(NamedTuple):
    """The contents of a backup."""

    tasks: int
    active: int  # of these: what had not ended, and is lost where it is restored
    unread: int  # notices that nobody was told of yet
    findings: tuple[Finding, ...]  # what is wrong with the ledger itself


def back_up(ledger: Path, target: Path, *, overwrite: bool = False) -> BackupSummary:
    """Raises MeantimeError, and OSError for a disk that is full or failing. Nothing is left behind then."""
    ledger, target = ledger.resolve(), target.absolute()
    _check_target(target, overwrite=overwrite)
    for left in reversed(range(TRIES)):
        with _stage(ledger) as stage:
            account = _copied(ledger, stage)
            if account.findings and left:
                continue
            _pack(stage, target, overwrite=overwrite)
            return account
    raise AssertionError("the last try returns or raises")


def account_of(ledger: Path) -> BackupSummary:
    """Accounts for a ledger that nobody has open. Raises LedgerDamaged where SQLite finds a fault in it."""
    with read_only(ledger, owned=False) as db:
        check_schema(db, ledger)
        (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise LedgerDamaged(f"{ledger} is damaged: {verdict}.", hint="See `meantime doctor`.")
        (tasks,) = db.execute("SELECT count(*) FROM tasks").fetchone()
        (active,) = db.execute(f"SELECT count(*) FROM tasks WHERE status IN {ACTIVE}").fetchone()
        (unread,) = db.execute(
            "SELECT count(*) FROM notices WHERE state IN ('unread', 'leased', 'parked')"
        ).fetchone()
    return BackupSummary(tasks, active, unread, damage(ledger, owned=False))


def _check_target(target: Path, *, overwrite: bool) -> None:
    if target.is_dir():
        raise InvalidInput(f"{target} is a folder.", hint="Name a file in it, such as meantime.tar.")
    if not target.parent.is_dir():
        raise InvalidInput(f"There is no folder {target.parent}.", hint="Make it, or name another one.")
    if os.path.lexists(target) and not overwrite:
        raise _exists(target)


def _exists(target: Path) -> InvalidInput:
    hint = "Name another file, or overwrite it with --force."
    return InvalidInput(f"{target} exists already; nothing was written.", hint=hint, code="exists")


@contextmanager
def _stage(ledger: Path) -> Generator[Path]:
    """A folder of our own beside the ledger. One that a killed backup has left is removed."""
    for left in ledger.parent.glob(f"{ledger.name}.backup-*"):
        with contextlib.suppress(OSError), held(left):
            shutil.rmtree(left, ignore_errors=True)
    stage = Path(f"{ledger}.backup-{secrets.token_hex(6)}")
    try:
        stage.mkdir(mode=0o700)
        with held(stage):
            yield stage
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def held(folder: Path) -> Generator[None]:
    """Raises OSError where another process holds it."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _copied(ledger: Path, stage: Path) -> BackupSummary:
    _hard_link_files(ledger, stage)
    _copy_database(ledger, stage / LEDGER)
    _copy_states(ledger, stage)
    _hard_link_files(ledger, stage)
    return account_of(stage / LEDGER)


def _hard_link_files(ledger: Path, stage: Path) -> None:
    """Files that the stage does not have yet."""
    for ending in BESIDE:
        folder = Path(f"{ledger}{ending}")
        if not folder.is_dir():
            continue
        for file in backup_archive.files_in(folder):
            link = stage / f"{LEDGER}{ending}" / file.relative_to(folder)
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError, FileNotFoundError):
                _hard_link(file, link)


def _hard_link(file: Path, link: Path) -> None:
    try:
        os.link(file, link, follow_symlinks=False)
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        shutil.copyfile(file, link, follow_symlinks=False)  # this file system has no links


def _copy_database(ledger: Path, copy: Path) -> None:
    os.close(os.open(copy, NEW_FILE, 0o600))
    # As if somebody owned it, also if nobody does: one may come while we read.
    with read_only(ledger, owned=True) as db, closing(sqlite3.connect(copy)) as into:
        check_schema(db, ledger)
        db.backup(into)
        into.execute("PRAGMA journal_mode=DELETE")  # so that the copy is one file


def _copy_states(ledger: Path, stage: Path) -> None:
    """States of work that had not ended: they keep changing, so they are copied, before what their commands
    say is linked once more. Nobody owns the copy, so it can never be taken for the original."""
    commands = Path(f"{ledger}.commands")
    with read_only(stage / LEDGER, owned=False) as db:
        rows = db.execute(f"SELECT body FROM tasks WHERE status IN {ACTIVE}")
        names = {Places(commands).of(task).name for task in readable(rows)}
    for state in (stage / f"{LEDGER}.commands").glob(f"*{cells.STATE_FILE}"):
        if state.stem in names:
            _copy_state(state)
    for state in (stage / f"{LEDGER}.agents").rglob(f"*{cells.STATE_FILE}"):
        _copy_state(state)


def _copy_state(state: Path) -> None:
    copy = state.with_suffix(".new")
    shutil.copyfile(state, copy)
    provenance.disown(copy)
    os.replace(copy, state)


def _pack(stage: Path, target: Path, *, overwrite: bool) -> None:
    """Whole or not at all, and readable by its owner alone."""
    head = ArchiveHead(backup_archive.FORMAT, __version__, time.time())
    try:
        with drafted(target, partial(backup_archive.write, stage, head)) as draft:
            backup_archive.read(draft)
            if overwrite:
                os.replace(draft, target)
            else:
                _give_name(draft, target)
    except FileExistsError:
        raise _exists(target) from None
    sync_folder(target.parent)


def _give_name(draft: Path, target: Path) -> None:
    """Holds even if somebody else writes a file of that name just now."""
    try:
        os.link(draft, target)
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError from None
        os.rename(draft, target)
