"""The audit: where every notice stands, what has been silent for long, and what does not fit together.

It reads the ledger itself, so it needs no daemon, and does not take a daemon's word for it.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from meantime.kernel.durations import duration
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Spill, Task
from meantime.stores.sqlite import salvage_report
from meantime.stores.sqlite.checksums import BAD, decode_task
from meantime.stores.sqlite.contents import find_all
from meantime.stores.sqlite.spilled_files import MovedPayloads

from .command_liveness import has_live_run, last_output
from .read_only_ledger import check_schema, read_only

HOUR = 3600.0
SILENT = 600.0  # seconds without a sign of life
OVERDUE = 60.0  # seconds after which a reminder is late
PIECE = 1 << 20  # bytes of a payload that are read at once
MOST = 20  # ids that one finding names
SPILLED = """
    SELECT body FROM tasks WHERE instr(body, CAST('"spill":' AS BLOB)) UNION ALL
    SELECT body FROM runs WHERE instr(body, CAST('"spill":' AS BLOB))"""
ENDED = "('completed', 'failed', 'cancelled', 'timed_out', 'lost')"

# What must never be: how many, and which. Each is one broken promise.
CONTRADICTIONS = {
    "ended without a notice": f"""
        SELECT t.id || '.' || t.run FROM tasks AS t
        WHERE t.status IN {ENDED} AND NOT EXISTS
          (SELECT 1 FROM notices AS n WHERE n.kind = 0 AND n.source = t.seq AND n.run = t.run)""",
    "an earlier run ended without a notice": """
        SELECT r.task_id || '.' || r.run FROM runs AS r JOIN tasks AS t ON t.id = r.task_id
        WHERE NOT EXISTS
          (SELECT 1 FROM notices AS n WHERE n.kind = 0 AND n.source = t.seq AND n.run = r.run)""",
    "a notice without its task": """
        SELECT n.thread || ' #' || n.number FROM notices AS n
        WHERE n.kind < 2 AND NOT EXISTS (SELECT 1 FROM tasks AS t WHERE t.seq = n.source)""",
    "a notice of a run that has not ended": f"""
        SELECT t.id || '.' || n.run FROM notices AS n JOIN tasks AS t ON t.seq = n.source
        WHERE n.kind = 0 AND (n.run > t.run OR (n.run = t.run AND t.status NOT IN {ENDED}))""",
    "a reminder that has come without a notice": """
        SELECT s.id || '.' || s.occurrence FROM schedules AS s
        WHERE s.state = 'done' AND NOT EXISTS
          (SELECT 1 FROM notices AS n WHERE n.kind = 2 AND n.source = s.seq AND n.run = s.occurrence)""",
    "a notice without its reminder": """
        SELECT n.thread || ' #' || n.number FROM notices AS n
        WHERE n.kind = 2 AND NOT EXISTS (SELECT 1 FROM schedules AS s WHERE s.seq = n.source)""",
    "a notice of a reminder that has not come": """
        SELECT s.id || '.' || n.run FROM notices AS n JOIN schedules AS s ON s.seq = n.source
        WHERE n.kind = 2 AND n.run > s.occurrence""",
    "a notice with a number that its thread never gave": """
        SELECT n.thread || ' #' || n.number FROM notices AS n LEFT JOIN threads AS h ON h.id = n.thread
        WHERE h.id IS NULL OR n.number > h.ended""",
}


class NoticeStanding(NamedTuple):
    """The notices of one state."""

    state: str
    how_many: int
    oldest: float  # seconds since its task ended


class Finding(NamedTuple):
    wrong: bool  # else it is only worth knowing
    what: str
    which: tuple[str, ...]
    todo: str = ""


class Audit(NamedTuple):
    notices: tuple[NoticeStanding, ...]
    tasks: dict[str, int]
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        return not any(finding.wrong for finding in self.findings)


def audit(ledger: Path, *, owned: bool, now: float) -> Audit:
    with read_only(ledger, owned=owned) as db:
        check_schema(db, ledger)
        rows = db.execute("SELECT state, count(*), min(at) FROM notices GROUP BY state ORDER BY state")
        notices = tuple(NoticeStanding(state, count, max(0.0, now - at)) for state, count, at in rows)
        tasks = dict(db.execute("SELECT status, count(*) FROM tasks GROUP BY status ORDER BY status"))
        findings = (
            *_unreadable(db),
            *_contradictions(db),
            *_unsalvaged(ledger),
            *_payloads(db, ledger, owned),
            *_notices(db, owned, now),
            *_reminders(db, owned, now),
            *_active(db, Path(f"{ledger}.commands"), owned, now),
        )
    return Audit(notices, tasks, findings)


def damage(ledger: Path, *, owned: bool) -> tuple[Finding, ...]:
    """Only what must never be, for a ledger that is backed up or restored."""
    with read_only(ledger, owned=owned) as db:
        check_schema(db, ledger)
        return (*_unreadable(db), *_contradictions(db), *_payloads(db, ledger, owned))


def _unreadable(db: sqlite3.Connection) -> Iterator[Finding]:
    """Rows that SQLite gives us whole, and that make no sense."""
    found = [f"{row.what}: {row.problem}" for row in find_all(db)]
    if found:
        todo = "Their notices are parked; the rest goes on. A backup may have them: docs/guides/backup.md."
        yield Finding(True, f"{len(found)} × a record that cannot be read", tuple(found[:MOST]), todo)


def _unsalvaged(ledger: Path) -> Iterator[Finding]:
    lost = salvage_report.missing(ledger)
    if lost:
        todo = "The damaged ledger is kept beside this one. The journal may also name tasks that were purged."
        yield Finding(False, "a salvage did not bring everything back", tuple(lost[:MOST]), todo)


def _payloads(db: sqlite3.Connection, ledger: Path, owned: bool) -> Iterator[Finding]:
    """Results and outputs that were too long for the ledger must be beside it, as they were written."""
    beside = MovedPayloads(ledger)
    found: dict[str, list[str]] = {"gone": [], "damaged": []}
    for task in map(beside.found, readable(db.execute(SPILLED))):
        spill = task.outcome.spill if task.outcome else None
        problem = _payload_problem(spill) if spill is not None else ""
        if problem and spill is not None and not (owned and _is_purged(ledger, task.id)):
            found[problem].append(f"{task.id}.{task.run.number}: {spill.path}")
    for problem, which in found.items():
        if which:
            todo = "Somebody has changed these files. A backup may have them: see docs/guides/backup.md."
            yield Finding(True, f"{len(which)} × a payload that is {problem}", tuple(which[:MOST]), todo)


def _payload_problem(spill: Spill) -> str:
    """Read in pieces, as some are large. Payloads of earlier versions have no checksum."""
    crc = 0
    try:
        with open(spill.path, "rb") as file:
            while spill.crc is not None and (piece := file.read(PIECE)):
                crc = zlib.crc32(piece, crc)
    except OSError:
        return "gone"
    return "" if spill.crc in (None, crc) else "damaged"


def readable(rows: Iterable[tuple[bytes]]) -> Iterator[Task]:
    """Without those that cannot be read, which are a finding of their own."""
    for (body,) in rows:
        with suppress(*BAD):
            yield decode_task(body)


def _is_purged(ledger: Path, id: str) -> bool:
    """Since we began to look: then its files are rightly gone."""
    with closing(sqlite3.connect(f"file:{quote(str(ledger))}?mode=ro", uri=True, timeout=5)) as db:
        return db.execute("SELECT 1 FROM tasks WHERE id = ?", (id,)).fetchone() is None


def _contradictions(db: sqlite3.Connection) -> Iterator[Finding]:
    for what, query in CONTRADICTIONS.items():
        found = [str(row[0]) for row in db.execute(query)]
        if found:
            todo = "This must not be. Keep a copy of the ledger, and report it."
            yield Finding(True, f"{len(found)} × {what}", tuple(found[:MOST]), todo)


def _notices(db: sqlite3.Connection, owned: bool, now: float) -> Iterator[Finding]:
    open_ones = """SELECT n.thread, count(*), min(n.at) FROM notices AS n
        WHERE n.state IN ('unread', 'leased', 'parked') AND {} GROUP BY n.thread ORDER BY n.thread"""
    cases = {
        "parked after failed deliveries": ("n.state = 'parked' AND n.parked_for = 'failures'", True),
        "parked, as nobody asks for them": ("n.state = 'parked' AND n.parked_for = 'unclaimed'", False),
        "parked, as they cannot be read": ("n.state = 'parked' AND n.parked_for = 'unreadable'", True),
        "unread for long": (f"n.state = 'unread' AND n.at < {now - SILENT!r}", False),
        "leased by a turn that is gone": (f"n.state = 'leased' AND {int(not owned)}", False),
        "leased for more than an hour": (
            f"n.state = 'leased' AND {int(owned)} AND n.at < {now - HOUR!r}",
            False,
        ),
    }
    todos = {
        "parked after failed deliveries": "Mend the host, then POST /v1/threads/<id>/unpark.",
        "leased by a turn that is gone": "They come again with the next daemon: `meantime up`.",
    }
    for what, (condition, wrong) in cases.items():
        rows = db.execute(open_ones.format(condition)).fetchall()
        if rows:
            count, oldest = sum(row[1] for row in rows), now - min(row[2] for row in rows)
            text = f"{count} × {what}; the oldest ended {duration(oldest)} ago"
            threads = tuple(f"thread {row[0]}" for row in rows[:MOST])
            yield Finding(wrong, text, threads, todos.get(what, ""))


def _reminders(db: sqlite3.Connection, owned: bool, now: float) -> Iterator[Finding]:
    """Reminders that are due. An owner counts delays by another clock, so only times of the wall clock count
    against it."""
    query = """SELECT id || ' of thread ' || thread FROM schedules
        WHERE state = 'pending' AND at < ? AND (clock = '' OR ?) ORDER BY at"""
    late = [str(row[0]) for row in db.execute(query, (now - OVERDUE, not owned))]
    if late:
        todo = "See daemon.log." if owned else "`meantime up` tells them, and says how late they come."
        yield Finding(
            owned, f"{len(late)} × a reminder that is due and did not come", tuple(late[:MOST]), todo
        )


def _active(db: sqlite3.Connection, commands: Path, owned: bool, now: float) -> Iterator[Finding]:
    """Running tasks: whether something really runs, and whether it reports."""
    spoken = dict(db.execute("SELECT task_id, max(at) FROM events GROUP BY task_id"))
    silent: list[str] = []
    dead: list[str] = []
    ends_with_us: list[str] = []
    rows = db.execute("SELECT body, updated FROM tasks WHERE status IN ('running', 'waiting', 'cancelling')")
    for body, updated in rows:
        task = next(readable([(body,)]), None)
        if task is None:
            continue
        is_command = task.work.kind == "shell"
        last = max(updated, spoken.get(task.id, 0.0), last_output(commands, task) if is_command else 0.0)
        if now - last > SILENT and task.status is Status.RUNNING:
            silent.append(f"{task.id} ({duration(now - last)}): {task.title}")
        if is_command and not has_live_run(commands, task, now):
            dead.append(task.id)
        if not is_command and not owned:
            ends_with_us.append(task.id)
    if silent:
        todo = "`meantime logs` shows what they said last; `meantime cancel` stops one."
        yield Finding(False, f"{len(silent)} × silent for more than 10 minutes", tuple(silent[:MOST]), todo)
    if dead:
        todo = "See daemon.log." if owned else "`meantime up` finds out how they ended."
        yield Finding(owned, f"{len(dead)} × running, but nothing runs", tuple(dead[:MOST]), todo)
    if ends_with_us:
        todo = "The process that ran them is gone: `meantime up` ends them as lost, and tells."
        yield Finding(False, f"{len(ends_with_us)} × left running", tuple(ends_with_us[:MOST]), todo)
