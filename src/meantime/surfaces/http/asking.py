"""What a request asks for: its parameters, checked once and turned into a Query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from meantime.kernel.errors import Ambiguous, InvalidInput, NotFound
from meantime.kernel.ids import ID, check_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.ports.store import Query, Sort
from meantime.ports.tasks import Tasks

from .wire import asked_for, words

DEFAULT_LIMIT, MAX_LIMIT = 50, 200
MAX_OFFSET = 1_000_000_000
MAX_SEARCH = 1_000
SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?\Z", re.ASCII)
T = TypeVar("T", bound=str)


def listing(given: Mapping[str, str], thread: str | None) -> Query:
    """`thread` is what the caller may see; None is everything."""
    chosen, resumed = statuses(given.get("status", ""))
    search = given.get("search", "")
    if len(search) > MAX_SEARCH:
        raise InvalidInput(f"search is longer than {MAX_SEARCH} characters.", hint="Look for less.")
    return Query(
        thread=scope(given, thread),
        statuses=chosen,
        resumed=resumed,
        batch=given.get("batch") or None,
        agent=given.get("agent") or None,
        search=search,
        hidden=flag(given, "cleared"),
        sort=_sort(given.get("sort", "")),
        limit=min(number(given, "limit", DEFAULT_LIMIT, least=1), MAX_LIMIT),
        offset=number(given, "offset", 0),
    )


def scope(given: Mapping[str, str], thread: str | None) -> str | None:
    """A caller that is bound to a thread sees no other, whatever it asks for."""
    wanted = given.get("thread") or None
    if thread is not None and wanted not in (None, thread):
        raise NotFound(f"No thread {wanted!r}.", hint="This token sees its own thread only.")
    return thread or wanted


def own_thread(named: str, own: str | None) -> str:
    """A thread by its name; a caller that is bound to one finds no other."""
    if own is not None and named != own:
        raise NotFound(f"No thread {named[:128]!r}.", hint="This token sees its own thread only.")
    return check_id(named, "thread")


def seconds(given: Mapping[str, str], name: str, default: float, most: float) -> float:
    said = given.get(name, "")
    if not said:
        return default
    if not (SECONDS.match(said) and 0 <= float(said) <= most):
        raise InvalidInput(f"{name}={said[:40]!r} is not possible.", hint=f"Give seconds from 0 to {most:g}.")
    return float(said)


def choice(given: Mapping[str, str], name: str, choices: tuple[T, ...]) -> T:
    """The first is what is meant where nothing is said."""
    said = given.get(name) or choices[0]
    for known in choices:
        if said == known:
            return known
    raise InvalidInput(f"{name}={said[:40]!r} is unknown.", hint=f"Use one of: {', '.join(choices)}.")


def number(
    given: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int = MAX_OFFSET
) -> int:
    said = given.get(name, "")
    if not said:
        return default
    if not (said.isascii() and said.isdigit() and len(said) <= 19 and least <= int(said) <= most):
        raise InvalidInput(
            f"{name}={said[:40]!r} is not possible.", hint=f"Give a whole number from {least} to {most}."
        )
    return int(said)


async def find(tasks: Tasks, id: str, thread: str | None) -> Task:
    """By its own id or by its session's; else by a unique prefix. Anything else is not found."""
    if not ID.match(id):
        raise NotFound(f"No task {id[:128]!r}.", hint="List /v1/tasks to see their ids.")
    try:
        task = await tasks.get(id, thread)
    except (NotFound, Ambiguous):
        found = await _in_session(tasks, id, thread)
        if found is not None:
            return found
        raise
    if task.id == id:
        return task
    return await _in_session(tasks, id, thread) or task


async def _in_session(tasks: Tasks, session: str, thread: str | None) -> Task | None:
    """The newest, where a session was used by several."""
    page = await tasks.page(Query(thread, session=session, hidden=True, limit=1), counted=False)
    return page.tasks[0] if page.tasks else None


def statuses(said: str) -> tuple[frozenset[Status] | None, bool | None]:
    named = [word for word in said.split(",") if word]
    if not named:
        return None, None
    if any(word not in words() for word in named):
        raise InvalidInput(
            f"status={said[:80]!r} names a status that is unknown.", hint=f"Use one of: {', '.join(words())}."
        )
    return asked_for(named)


def _sort(said: str) -> Sort:
    try:
        return Sort(said) if said else Sort.NEWEST
    except ValueError:
        raise InvalidInput(
            f"sort={said[:40]!r} is unknown.", hint=f"Use one of: {', '.join(Sort)}."
        ) from None


def flag(given: Mapping[str, str], name: str) -> bool:
    said = given.get(name, "").lower()
    if said not in ("", "0", "1", "true", "false"):
        raise InvalidInput(f"{name}={said[:40]!r} is neither true nor false.")
    return said in ("1", "true")
