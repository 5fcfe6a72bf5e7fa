"""One action on many tasks: those that are named, or everything that a search matches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from msgspec import Meta

from meantime.kernel.change import Disposition
from meantime.kernel.errors import InvalidInput, MeantimeError
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.model import Task
from meantime.kernel.search_query import LONGEST
from meantime.ports.store import Query

from .dependencies import Dependencies
from .paging import pages
from .responses import CountChanged, Refusal
from .routing import RequestContext
from .schemas import Answer, Body, Count, described, refused
from .task_lookup import find, searched

MOST_TASKS = 10_000  # of one request
MOST_NAMED = 1_000
MOST_REFUSED = 100  # that are listed


class BulkBody(Body):
    action: Annotated[Literal["cancel", "clear", "purge"], described("purge deletes for good.")]
    expect: Annotated[
        int, described("How many tasks the caller has agreed to; 409 `count_changed` if not so many match.")
    ]
    ids: Annotated[
        Annotated[
            list[str], refused(f"ids: at most {MOST_NAMED} at once; use q for more.", max_length=MOST_NAMED)
        ]
        | None,
        described("The tasks, by their ids; either these or q."),
    ] = None
    q: Annotated[
        Annotated[str, refused(f"q: at most {LONGEST} characters.", max_length=LONGEST)] | None,
        described("A search: everything that it matches."),
    ] = None


class RefusedTask(Answer):
    id: str
    code: str
    reason: str


class BulkDone(Answer):
    matched: Count
    done: Count
    refused: Annotated[list[RefusedTask], Meta(max_length=MOST_REFUSED), described("The first of them.")]
    refused_count: Count


async def bulk(deps: Dependencies, asked: RequestContext[None, BulkBody]) -> BulkDone:
    body = asked.body
    if (body.ids is None) == (body.q is None):
        raise InvalidInput("Give either ids or q.", hint="q is a search, such as `status:failed`.")
    if body.action == "purge" and asked.thread is not None:
        text = "Only a person deletes for good, not the token of a thread."
        raise Refusal(403, "person_only", text, "Use clear, which hides.")
    if body.ids is not None:
        found, problems = await _named(deps, body.ids, asked.thread)
    else:
        found, problems = await _matching(deps, asked)
    matched = len(found) + len(problems)
    if matched != body.expect:
        raise CountChanged(body.expect, matched)
    act, done = _ACTIONS[body.action], 0
    for task in found:
        try:
            await act(deps, task, "user" if asked.thread is None else "agent")
            done += 1
        except MeantimeError as problem:
            problems.append(RefusedTask(task.id, problem.code, problem.message))
    return BulkDone(matched, done, problems[:MOST_REFUSED], len(problems))


async def _named(
    deps: Dependencies, ids: list[str], thread: str | None
) -> tuple[list[Task], list[RefusedTask]]:
    found: dict[str, Task] = {}
    problems: list[RefusedTask] = []
    for id in dict.fromkeys(ids):
        try:
            task = await find(deps.tasks, id, thread)
            found[task.id] = task
        except MeantimeError as problem:
            problems.append(RefusedTask(id[:128], problem.code, problem.message))
    return list(found.values()), problems


async def _matching(
    deps: Dependencies, asked: RequestContext[None, BulkBody]
) -> tuple[list[Task], list[RefusedTask]]:
    """All of them are known before the first is touched: what is done changes what matches."""
    query = searched(Query(asked.thread), asked.body.q or "", deps.clock.now())
    found = [task async for page in pages(deps.tasks, query, MOST_TASKS + 1) for task in page]
    if len(found) > MOST_TASKS:
        raise InvalidInput(
            f"More than {MOST_TASKS:,} tasks match.", hint="Narrow the search, such as with since:7d."
        )
    return found, []


async def _cancel(deps: Dependencies, task: Task, by: str) -> None:
    answer = await deps.tasks.cancel(task.id, None, by=by)
    if answer.disposition is Disposition.ALREADY_ENDED and not answer.killed:
        raise Refusal(409, "ended", "It has ended.")


async def _clear(deps: Dependencies, task: Task, by: str) -> None:
    if not await deps.tasks.clear(task.thread, [task.id]):
        raise _not_done(task, "It is cleared already.")


async def _purge(deps: Dependencies, task: Task, by: str) -> None:
    if not await deps.tasks.purge([task.id]):
        raise _not_done(task, "It was resumed meanwhile.")


def _not_done(task: Task, why: str) -> Refusal:
    if task.status not in ENDED:
        return Refusal(409, "still_active", f"It has not ended; it is {task.status}.", "Cancel it first.")
    return Refusal(409, "refused", why)


_ACTIONS: dict[str, Callable[[Dependencies, Task, str], Awaitable[None]]] = {
    "cancel": _cancel,
    "clear": _clear,
    "purge": _purge,
}
