"""Listing: the page a query asks for, read from an index, newest first, and no further than the page."""

from __future__ import annotations

from msgspec.structs import replace

from meantime.kernel.lifecycle import Status
from meantime.ports.store import Query, Sort

_ORDERS = {
    Sort.NEWEST: "seq DESC",
    Sort.OLDEST: "seq",
    Sort.UPDATED: "updated DESC, seq DESC",
    Sort.LONGEST: "duration IS NULL, duration DESC, seq DESC",
}


def is_scan(query: Query) -> bool:
    """Whether it may have to read the whole history: for what no index is kept."""
    return query.sort is not Sort.NEWEST or query.agent is not None or bool(query.search)


def is_narrow(query: Query) -> bool:
    """Whether it asks for more than some statuses: how many there are of those is known."""
    scope = (query.thread, query.batch, query.resumed, query.agent, query.session)
    return bool(query.search) or any(part is not None for part in scope)


def page(query: Query) -> tuple[str, list[object]]:
    if is_scan(query) or query.resumed is not None or query.session is not None:
        return _sorted(query)
    if query.batch is not None:
        return _of_batch(query)
    if query.thread is not None or query.statuses is not None:
        return _by_status(query)
    sql = f"SELECT body FROM tasks WHERE {_shown(query)} ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [query.limit, query.offset]


def _by_status(query: Query) -> tuple[str, list[object]]:
    """Each status from its own stretch of the index: a rare one must not wait behind a common one."""
    statuses = sorted(query.statuses if query.statuses is not None else frozenset(Status))
    where, scope = (
        ("status = ?", []) if query.thread is None else ("thread = ? AND status = ?", [query.thread])
    )
    part = (
        f"SELECT * FROM (SELECT seq, body FROM tasks WHERE {where} AND {_shown(query)} "
        "ORDER BY seq DESC LIMIT ?)"
    )
    end = query.limit + query.offset
    values: list[object] = [value for status in statuses for value in (*scope, status, end)]
    parts = " UNION ALL ".join([part] * len(statuses)) or "SELECT seq, body FROM tasks WHERE 0"
    sql = f"SELECT body FROM ({parts}) ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _of_batch(query: Query) -> tuple[str, list[object]]:
    """A batch is small: its rows are read whole. The pluses keep SQLite off the other indexes."""
    where, values = ["batch = ?", _shown(query)], list[object]([query.batch])
    if query.thread is not None:
        where.append("+thread = ?")
        values.append(query.thread)
    if query.statuses is not None:
        where.append(f"+status IN ({','.join('?' * len(query.statuses))})")
        values += sorted(query.statuses)
    sql = f"SELECT body FROM tasks WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _sorted(query: Query) -> tuple[str, list[object]]:
    """Only the places are sorted; the bodies are fetched for those on the page."""
    where, values = _where(query)
    order = _ORDERS[query.sort]
    places = f"SELECT seq FROM tasks WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
    sql = f"SELECT body FROM tasks WHERE seq IN ({places}) ORDER BY {order}"
    return sql, [*values, query.limit, query.offset]


def counting(query: Query) -> tuple[str, list[object]]:
    """How many there are, before paging. Queries with an index are counted there; the cleared tasks, which no
    other index knows, are few.
    """
    where, values = _where(query)
    if query.hidden or is_scan(query) or query.resumed is not None or query.session is not None:
        return f"SELECT count(*) FROM tasks WHERE {where}", values
    every, values = _where(replace(query, hidden=True))
    hidden = f"SELECT count(*) FROM tasks INDEXED BY tasks_hidden WHERE hidden = 1 AND {every}"
    return f"SELECT (SELECT count(*) FROM tasks WHERE {every}) - ({hidden})", [*values, *values]


def _where(query: Query) -> tuple[str, list[object]]:
    """Everything that a query can ask, as one condition."""
    where, values = [_shown(query)], list[object]()
    named = {"thread": query.thread, "batch": query.batch, "agent": query.agent, "session": query.session}
    for column, value in named.items():
        if value is not None:
            where.append(f"{column} = ?")
            values.append(value)
    if query.statuses is not None:
        where.append(f"status IN ({','.join('?' * len(query.statuses))})")
        values += sorted(query.statuses)
    if query.resumed is not None:
        where.append(f"(status != 'running' OR run {'>' if query.resumed else '='} 1)")
    if query.search:  # not LIKE: it knows the case of ASCII letters only, and has wildcards
        where.append("instr(words, ?) > 0")
        values.append(query.search.casefold())
    return " AND ".join(where), values


def _shown(query: Query) -> str:
    return "1" if query.hidden else "hidden = 0"
