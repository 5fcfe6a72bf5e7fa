"""The account of a salvage, by thread: what came back, and what is known to be missing."""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict
from pathlib import Path

from .salvaged_rows import Salvaged
from .sql import queries

SQL = queries()
FILE = "salvage.txt"
MISSING = "missing"
MOST_IDS = 50  # of one thread
SAID = 20  # threads that the log names
logger = logging.getLogger("meantime")


def lines(db: sqlite3.Connection, found: Salvaged) -> list[str]:
    """`db` is the new ledger. A line for each thread; those that lack something begin with "missing"."""
    back = {thread: (tasks, ended) for thread, tasks, ended in db.execute(SQL["threads_of_salvage"])}
    untold = dict(db.execute(SQL["untold_of_salvage"]).fetchall())
    missing: defaultdict[str, list[str]] = defaultdict(list)
    for id, thread in found.unreadable.items():
        missing[thread].append(f"{id} (cannot be read)")
    # The journal names tasks that were removed on purpose, too: nobody can tell those apart any more.
    for thread, id in db.execute(SQL["journal_without_task"]):
        if id not in found.unreadable:
            missing[thread].append(id)
    said = [
        f"thread {thread}: {tasks} tasks came back, {ended or 0} ended, {untold.get(thread, 0)} untold"
        for thread, (tasks, ended) in sorted(back.items())
    ]
    for thread, ids in sorted(missing.items()):
        more = "" if len(ids) <= MOST_IDS else f" and {len(ids) - MOST_IDS} more"
        said.append(f"{MISSING} in thread {thread}: {len(ids)} tasks: {', '.join(ids[:MOST_IDS])}{more}")
    if not found.is_whole:
        said.append(f"{MISSING}: parts of the ledger could not be read; tasks in them cannot be named")
    return said or ["nothing came back"]


def write(folder: Path, account: list[str]) -> None:
    """Beside what was set aside, and to the log, which may be all that anybody sees."""
    (folder / FILE).write_text("\n".join(account) + "\n", errors="replace")
    for line in [*account[:SAID], *(line for line in account[SAID:] if line.startswith(MISSING))][: 2 * SAID]:
        logger.warning("Salvage: %s", line)


def missing(ledger: Path) -> list[str]:
    """The account of the last salvage of this ledger."""
    folders = sorted(ledger.parent.glob(f"{ledger.name}.salvaged-*"))
    try:
        account = (folders[-1] / FILE).read_text(errors="replace") if folders else ""
    except OSError:
        return []
    return [line for line in account.splitlines() if line.startswith(MISSING)]
