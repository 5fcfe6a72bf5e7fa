"""Opening a ledger: whose file it is, who owns it, whether it is sound. Closing it, the reverse."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from meantime.kernel.errors import LedgerDamaged, LedgerError, MeantimeError

from . import checkpoints, salvage
from .ledger_lock import Lock, make_private
from .sql import migrate, schema_lacks
from .wal_mark import WalMark, has_frames
from .write_errors import translate
from .writer import Writer

ALWAYS_CHECKED = 16 << 20  # bytes that are checked in some tens of milliseconds


class LedgerFile:
    def __init__(self, path: Path, *, salvages: bool) -> None:
        self.path = path
        self.saved: dict[str, int] = {}  # rows that a salvage brought over, by table
        self._salvages = salvages
        self._lock = Lock(path)
        self.examines = ""  # when the contents of all rows are to be read: now, later, or not at all
        self._mark = WalMark(path)
        self._clean = True

    async def open(self, writer: Writer) -> None:
        """On any failure nothing is held, and the error is one of ours."""
        if salvage.is_foreign(self.path, self._lock.path):
            text = f"{self.path} is not a ledger of Meantime; nothing was changed."
            raise LedgerError(text, hint="Name another file.")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.take()
            await self._open_database(writer)
        except sqlite3.Error as problem:
            self._lock.drop()
            raise translate(problem, self.path) from problem
        except OSError as problem:
            self._lock.drop()
            raise _not_opened(self.path, problem) from problem
        except BaseException:
            self._lock.drop()
            raise
        self._lock.mark_made(checkpoints.number_in(self.path) or 0)

    async def _open_database(self, writer: Writer) -> None:
        aside = salvage.last_set_aside(self.path)
        if aside is not None:
            self._salvage(aside, "")
        elif self._lock.was_made and not _is_there(self.path):
            self._miss()
        make_private(self.path)
        if self._is_older() and not has_frames(self.path):
            if not self._salvages:
                raise _older(self.path, self._lock.path)
            self._lock.accept_copy()
        if self._lock.is_copy or not self._lock.was_marked:
            self._mark.forget()  # it is of another ledger, or an earlier version has gone on without it
        # SQLite calls a read error of the disk corruption, too: only what is seen twice is damage.
        if await self._try(writer) and (damage := await self._try(writer)):
            self._salvage(salvage.set_aside(self.path), damage)
            await writer.open(self._prepare)

    def _miss(self) -> None:
        """The ledger is empty or gone. Its WAL may still hold everything."""
        if self.path.exists() or _is_there(Path(f"{self.path}-wal")):
            self._salvage(salvage.set_aside(self.path), "it is empty or gone, and was there")
        elif not self._salvages:
            raise _gone(self.path, self._lock.path)
        else:
            self._lock.note(checkpoints=0)  # a new one begins

    def _is_older(self) -> bool:
        known = self._lock.checkpoints
        number = checkpoints.number_in(self.path) if known and _is_there(self.path) else None
        return number is not None and number < known

    async def _try(self, writer: Writer) -> str:
        """Opens the database, or says what is damaged in it."""
        if self._is_older():
            return "its database is older than its WAL"
        is_own = not self._lock.is_copy and self._lock.was_marked  # otherwise its mark says nothing
        if is_own and self._lock.was_clean and self._mark.is_of_another():
            return "it was closed, and a WAL that is not its own is beside it"
        try:
            if missing := self._mark.missing(self._lock.checkpoints):
                return missing
            await writer.open(self._prepare)
        except salvage.Damaged as damage:
            return str(damage)
        except UnicodeError as problem:  # in what SQLite says of a schema that is garbage
            return f"its schema cannot be read: {problem}"
        except sqlite3.DatabaseError as problem:
            if not salvage.is_damage(problem):
                raise
            return str(problem)
        return ""

    def _prepare(self, db: sqlite3.Connection) -> None:
        """A small file is checked whole, and so is one in which the last owner has met damage. Otherwise its
        schema is enough: after a crash a large file is read once it is open, since that takes long."""
        small = self.path.stat().st_size < ALWAYS_CHECKED
        thorough = small or bool(self._lock.damage)
        problem = salvage.check(db, thorough=thorough)
        self.examines = "now" if small else "" if self._lock.was_clean else "later"
        if problem:
            raise salvage.Damaged(problem)
        try:
            migrate(db)
        except sqlite3.OperationalError as wrong:
            if wrong.sqlite_errorcode != sqlite3.SQLITE_ERROR:
                raise  # the disk, not the statements
            raise salvage.Damaged(f"its schema is not what its version says: {wrong}") from wrong
        if lacking := schema_lacks(db):
            raise salvage.Damaged(f"its schema lacks {lacking}")

    def _salvage(self, aside: Path, problem: str) -> None:
        if not self._salvages:
            raise _damaged(self.path, aside, problem)
        self.saved = salvage.rebuild(self.path, aside, self._lock.checkpoints + 1)

    @property
    def is_copy(self) -> bool:
        return self._lock.is_copy

    def own(self) -> None:
        self._lock.own()

    def translate(self, problem: sqlite3.Error) -> MeantimeError:
        """Damage that is met on the way is remembered."""
        if salvage.is_damage(problem):
            self.remember(str(problem))
        return translate(problem, self.path)

    def remember(self, damage: str) -> None:
        """The next open checks the whole file; without a word of what is wrong it reads the contents."""
        self._clean = False
        if damage and not self._lock.damage:
            self._lock.note(damage=damage)

    def checkpointed(self, number: int) -> None:
        self._lock.note(checkpoints=number)

    def close(self) -> None:
        """A failing disk may have left a WAL that the mark could not be written for: then the next owner must
        not take it for another ledger's."""
        self._lock.give_back(clean=self._clean and not self._mark.is_of_another())


def _is_there(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _not_opened(path: Path, problem: OSError) -> LedgerError:
    hint = "Name a file in a folder that you may write to, on a disk with room."
    return LedgerError(f"{path} cannot be opened: {problem.strerror or problem}.", hint=hint)


def _gone(ledger: Path, lock: Path) -> LedgerDamaged:
    return LedgerDamaged(
        f"The ledger {ledger} is gone: {lock.name} says that it was there.",
        hint=f"Put it back, or restore a backup. To begin anew, remove {lock}, or open it with salvage=True.",
    )


def _older(ledger: Path, lock: Path) -> LedgerDamaged:
    return LedgerDamaged(
        f"The ledger {ledger} is an older copy: {lock.name} says that a newer one was there.",
        hint="Put the newer one back, or move this one away and restore a backup with `meantime restore`. "
        f"To go on with this copy, open it with salvage=True, or remove {lock}: active tasks end as lost.",
    )


def _damaged(ledger: Path, folder: Path, problem: str) -> LedgerDamaged:
    rows = salvage.readable(folder / ledger.name)
    return LedgerDamaged(
        f"The ledger {ledger} is damaged ({problem or 'set aside earlier'}). "
        f"It was set aside, whole, in {folder}; "
        f"{rows.get('tasks', 0)} tasks and {rows.get('notices', 0)} notices in it can be read.",
        hint="Open it with salvage=True to go on with those, or put a backup in its place.",
    )
