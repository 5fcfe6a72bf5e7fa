"""A search as a query of the store, and whether a task fits one."""

from __future__ import annotations

from msgspec.structs import replace

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.search_query import TEXT, SearchQuery, Term, moment

from .store import Query


def narrowed(query: Query, search: SearchQuery, now: float) -> Query:
    """The query, with what is searched for. Times and statuses, and one thread or batch, have an index."""
    statuses = query.statuses
    rest: list[Term] = []
    for term in search.terms:
        only = term.values[0] if len(term.values) == 1 and not term.negated else None
        if term.name == "status":
            named = frozenset(map(Status, term.values))
            chosen = frozenset(Status) - named if term.negated else named
            statuses = chosen if statuses is None else statuses & chosen
        elif term.name == "since":
            query = replace(query, since=moment(term.values[0], now))
        elif term.name == "until":
            query = replace(query, until=moment(term.values[0], now))
        elif term.name == "thread" and only is not None and query.thread is None:
            query = replace(query, thread=only)
        elif term.name == "batch" and only is not None and query.batch is None:
            query = replace(query, batch=only)
        else:
            rest.append(term)
    return replace(query, statuses=statuses, terms=(*query.terms, *rest))


def fits(query: Query, task: Task) -> bool:
    """Whether a task is one of those that the query asks for, wherever its page begins."""
    return (
        (query.thread is None or task.thread == query.thread)
        and (query.statuses is None or task.status in query.statuses)
        and (query.batch is None or task.batch == query.batch)
        and (query.hidden or not task.hidden)
        and (query.resumed is None or task.ended or task.resumed == query.resumed)
        and (query.agent is None or task.agent_or_kind == query.agent)
        and (query.session is None or task.session == query.session)
        and (not query.search or query.search.casefold() in task.title.casefold())
        and (query.since is None or task.created_at >= query.since)
        and (query.until is None or task.created_at < query.until)
        and all(_fits(term, task) for term in query.terms)
    )


def _fits(term: Term, task: Task) -> bool:
    if term.name == TEXT:
        return (term.values[0].casefold() in task.title.casefold()) is not term.negated
    has = {"agent": task.agent_or_kind, "kind": task.work.kind, "thread": task.thread, "batch": task.batch}
    return (has[term.name] in term.values) is not term.negated
