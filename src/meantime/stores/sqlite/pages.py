"""Listing: the page a query asks for, read from an index, newest first, and no further than the page."""

from __future__ import annotations

from meantime.ports.store import Query


def page(query: Query) -> tuple[str, list[object]]:
    if query.statuses is not None and query.thread is None and query.batch is None:
        return _by_status(query)
    where, values = [_shown(query)], list[object]()
    for column, value in (("batch", query.batch), ("thread", query.thread)):
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if query.statuses is not None:
        # The plus keeps SQLite off the index by status: it would read everybody's history.
        where.append(f"+status IN ({','.join('?' * len(query.statuses))})")
        values += sorted(query.statuses)
    sql = f"SELECT body FROM tasks WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _by_status(query: Query) -> tuple[str, list[object]]:
    """Each status from its own stretch of the index: a rare one must not wait behind a common one."""
    assert query.statuses is not None
    part = (
        f"SELECT * FROM (SELECT seq, body FROM tasks WHERE status = ? AND {_shown(query)} "
        "ORDER BY seq DESC LIMIT ?)"
    )
    end = query.limit + query.offset
    values: list[object] = [value for status in sorted(query.statuses) for value in (status, end)]
    parts = " UNION ALL ".join([part] * len(query.statuses)) or "SELECT seq, body FROM tasks WHERE 0"
    sql = f"SELECT body FROM ({parts}) ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _shown(query: Query) -> str:
    return "1" if query.hidden else "hidden = 0"
