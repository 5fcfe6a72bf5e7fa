"""Listing: the page a query asks for, always from an index, whatever the history."""

from __future__ import annotations

from meantime.kernel.lifecycle import Status
from meantime.ports.store import Query


def page(query: Query) -> tuple[str, list[object]]:
    """One sub-query per status, each read newest first from its index and no further than the page."""
    shown = "" if query.hidden else " AND hidden = 0"
    end = query.limit + query.offset
    if query.batch is not None:
        return _of_batch(query, shown)
    if query.thread is None and query.statuses is None:
        sql = f"SELECT body FROM tasks WHERE 1{shown} ORDER BY seq DESC LIMIT ? OFFSET ?"
        return sql, [query.limit, query.offset]
    statuses = sorted(query.statuses if query.statuses is not None else frozenset(Status))
    parts: list[str] = []
    values: list[object] = []
    for status in statuses:
        where = "status = ?" if query.thread is None else "thread = ? AND status = ?"
        values += [status, end] if query.thread is None else [query.thread, status, end]
        parts.append(
            f"SELECT * FROM (SELECT seq, body FROM tasks WHERE {where}{shown} ORDER BY seq DESC LIMIT ?)"
        )
    if not parts:
        return "SELECT body FROM tasks WHERE 0", []
    sql = f"SELECT body FROM ({' UNION ALL '.join(parts)}) ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _of_batch(query: Query, shown: str) -> tuple[str, list[object]]:
    where, values = f"batch = ?{shown}", [query.batch]
    if query.thread is not None:
        where += " AND thread = ?"
        values.append(query.thread)
    if query.statuses is not None:
        where += f" AND status IN ({','.join('?' * len(query.statuses))})"
        values += sorted(query.statuses)
    sql = f"SELECT body FROM tasks WHERE {where} ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]
