"""Listing: the page a query asks for, read from an index, newest first, and no further than the page."""

from __future__ import annotations

from msgspec.structs import replace

from meantime.kernel.lifecycle import Status
from meantime.kernel.search_query import TEXT, Term
from meantime.ports.store import Query, Sort

_ORDERS = {
    Sort.NEWEST: "seq DESC",
    Sort.OLDEST: "seq",
    Sort.UPDATED: "updated DESC, seq DESC",
    Sort.LONGEST: "duration IS NULL, duration DESC, seq DESC",
}


def is_scan(query: Query) -> bool:
    """Whether it may have to read the whole history: for what no index is kept."""
    return query.sort is not Sort.NEWEST or query.agent is not None or bool(query.search or query.terms)


def is_narrow(query: Query) -> bool:
    """Whether it asks for more than some statuses: how many there are of those is known."""
    scope = (query.thread, query.batch, query.resumed, query.agent, query.session, query.since, query.until)
    return bool(query.search or query.terms) or any(part is not None for part in scope)


def page(query: Query) -> tuple[str, list[object]]:
    if is_scan(query) or query.resumed is not None or query.session is not None:
        return _sorted(query)
    if query.batch is not None:
        return _of_batch(query)
    if query.thread is not None or query.statuses is not None:
        return _by_status(query)
    where, values = [_shown(query)], list[object]()
    _add_before(query, where, values)
    sql = f"SELECT body FROM tasks WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _add_before(query: Query, where: list[str], values: list[object]) -> None:
    """Places, not times: the store has looked up where a time begins."""
    for column, place in (("seq <", query.before), ("seq >=", query.since), ("seq <", query.until)):
        if place is not None:
            where.append(f"{column} ?")
            values.append(place)


def _by_status(query: Query) -> tuple[str, list[object]]:
    """Each status from its own stretch of the index: a rare one must not wait behind a common one."""
    statuses = sorted(query.statuses if query.statuses is not None else frozenset(Status))
    where, scope = (["status = ?"], list[object]())
    if query.thread is not None:
        where, scope = ["thread = ?", *where], [query.thread]
    older = list[object]()
    _add_before(query, where, older)
    part = (
        f"SELECT * FROM (SELECT seq, body FROM tasks WHERE {' AND '.join(where)} AND {_shown(query)} "
        "ORDER BY seq DESC LIMIT ?)"
    )
    end = query.limit + query.offset
    values: list[object] = [value for status in statuses for value in (*scope, status, *older, end)]
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
    _add_before(query, where, values)
    sql = f"SELECT body FROM tasks WHERE {' AND '.join(where)} ORDER BY seq DESC LIMIT ? OFFSET ?"
    return sql, [*values, query.limit, query.offset]


def _sorted(query: Query) -> tuple[str, list[object]]:
    """Only the places are sorted; the bodies are fetched for those on the page."""
    where, values = _where(query)
    if query.before is not None:
        where, values = f"{where} AND seq < ?", [*values, query.before]
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


def counting_to(query: Query, most: int) -> tuple[str, list[object]]:
    """No further than `most`: for a history that is too long to be counted while somebody waits."""
    where, values = _where(query)
    return f"SELECT count(*) FROM (SELECT 1 FROM tasks WHERE {where} LIMIT ?)", [*values, most]


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
        active = "status IN ('queued', 'running', 'waiting', 'cancelling')"
        where.append(f"(NOT {active} OR run {'>' if query.resumed else '='} 1)")
    for term in query.terms:
        _add_term(term, where, values)
    for column, place in (("seq >=", query.since), ("seq <", query.until)):
        if place is not None:
            where.append(f"{column} ?")
            values.append(place)
    if query.search:  # not LIKE: it knows the case of ASCII letters only, and has wildcards
        where.append("instr(words, ?) > 0")
        values.append(query.search.casefold())
    return " AND ".join(where), values


def _add_term(term: Term, where: list[str], values: list[object]) -> None:
    if term.name == TEXT:
        where.append(f"instr(words, ?) {'= 0' if term.negated else '> 0'}")
        values.append(term.values[0].casefold())
        return
    listed = ",".join("?" * len(term.values))
    column = f"coalesce({term.name}, '')"  # a task without a batch is not in this one
    where.append(f"{column} {'NOT IN' if term.negated else 'IN'} ({listed})")
    values += term.values


def _shown(query: Query) -> str:
    return "1" if query.hidden else "hidden = 0"
