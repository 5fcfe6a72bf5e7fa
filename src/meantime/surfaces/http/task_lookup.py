"""Which tasks a request means, and whether its caller may see them."""

from __future__ import annotations

from collections.abc import Iterable

from meantime.kernel.errors import InvalidInput, NotFound
from meantime.kernel.ids import ID, check_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.search_query import parse
from meantime.ports.search_filter import narrowed
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from .task_encoding import statuses_of_word, words
from .task_requests import MOST_PAGE, TaskFilter


def listing(given: TaskFilter, thread: str | None, now: float) -> Query:
    """`thread` is what the caller may see; None is everything."""
    chosen, resumed = statuses(given.status)
    query = Query(
        thread=scope(given.thread, thread),
        statuses=chosen,
        resumed=resumed,
        batch=given.batch,
        agent=given.agent,
        search=given.search or "",
        hidden=given.cleared,
        sort=given.sort,
        limit=min(given.limit, MOST_PAGE),
        offset=given.offset,
    )
    return searched(query, given.q, now)


def searched(query: Query, q: str | None, now: float) -> Query:
    """The query, with the search that a caller wrote."""
    return query if q is None else narrowed(query, parse(q), now)


def place_of(cursor: str | None) -> int | None:
    """Where a page of rows begins."""
    if cursor is None:
        return None
    place = cursor[1:]
    if cursor[0] != "p" or not (place.isascii() and place.isdigit() and len(place) < 19):
        raise InvalidInput(
            f"cursor={cursor[:40]!r} is not one of ours.",
            hint="Leave it out for the first page.",
            code="bad_cursor",
        )
    return int(place)


def scope(wanted: str | None, own: str | None) -> str | None:
    """A caller that is bound to a thread sees no other, whatever it asks for."""
    if own is not None and wanted not in (None, own):
        raise NotFound(f"No thread {wanted!r}.", hint="This token sees its own thread only.")
    return own or wanted


def own_thread(named: str, own: str | None) -> str:
    """A thread by its name; a caller that is bound to one finds no other."""
    if own is not None and named != own:
        raise NotFound(f"No thread {named[:128]!r}.", hint="This token sees its own thread only.")
    return check_id(named, "thread")


def statuses(named: Iterable[str]) -> tuple[frozenset[Status] | None, bool | None]:
    """By seed 001's words."""
    named = [word for word in named if word]
    if not named:
        return None, None
    if any(word not in words() for word in named):
        said = ",".join(named)
        raise InvalidInput(
            f"status={said[:80]!r} names a status that is unknown.", hint=f"Use one of: {', '.join(words())}."
        )
    return statuses_of_word(named)


async def find(tasks: Tasks, id: str, thread: str | None) -> Task:
    """By its own id or by its session's; otherwise by a unique prefix. Anything else is not found."""
    if not ID.match(id):
        raise NotFound(f"No task {id[:128]!r}.", hint="List /v1/tasks to see their ids.")
    return await tasks.get(id, thread)
