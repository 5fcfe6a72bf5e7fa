"""goose's own record of its sessions: whom a subagent works for, and whether a conversation has a notice.

goose names its session to shells, MCP servers and hooks, and keeps the messages in a SQLite database. The
database is only read. A hook imports this, so it loads nothing that a bare Python has not loaded.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

PATIENCE = 0.5  # seconds that a database which somebody writes is waited for
DEEPEST = 20  # subagents of subagents
MOST = 1_000  # messages of a session, the newest, in which a notice is looked for

_ROOT = f"""
WITH RECURSIVE above(id, parent, depth) AS (
    SELECT id, parent_session_id, 0 FROM sessions WHERE id = ?
    UNION ALL
    SELECT s.id, s.parent_session_id, depth + 1 FROM sessions s JOIN above ON s.id = above.parent
    WHERE depth < {DEEPEST}
)
SELECT id FROM above ORDER BY depth DESC LIMIT 1
"""
_TEXTS = "SELECT content_json FROM messages WHERE session_id = ? ORDER BY id DESC LIMIT ?"


def root(session: str, environ: Mapping[str, str]) -> str:
    """The session itself, or the one for which it works if it is a subagent's; empty for what is not a
    session of goose."""
    day, _, number = session.partition("_")
    if len(day) != 8 or not (day.isdigit() and number.isdigit()):  # others may have a variable of that name
        return ""
    above = _read(database(environ), _ROOT, (session,))
    return str(above[0][0]) if above else session


def database(environ: Mapping[str, str]) -> str:
    """Where goose keeps its sessions."""
    own = environ.get("GOOSE_PATH_ROOT", "")
    if own:
        return os.path.join(own, "data/sessions/sessions.db")
    data, user = environ.get("XDG_DATA_HOME", ""), environ.get("HOME", "") or os.path.expanduser("~")
    return os.path.join(data if os.path.isabs(data) else f"{user}/.local/share", "goose/sessions/sessions.db")


def found(path: str, session: str, ids: Iterable[str]) -> set[str] | None:
    """The notices that the messages of a session have; None where there is no record of it."""
    texts = _read(path, _TEXTS, (session, MOST))
    if not texts:
        return None
    said = "\n".join(str(row[0]) for row in texts)
    return {id for id in ids if f'task-notification id=\\"{id}\\"' in said}


def _read(path: str, query: str, values: tuple[object, ...]) -> list[Any]:
    """Nothing from a database that is not there, or is another version's."""
    if not os.path.isfile(path):
        return []
    import sqlite3
    from contextlib import closing
    from urllib.parse import quote

    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=PATIENCE)) as opened:
            return opened.execute(query, values).fetchall()
    except sqlite3.Error:
        return []
