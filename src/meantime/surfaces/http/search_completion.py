"""GET /v1/complete: what the last word of a search can become, from what was seen of late."""

from __future__ import annotations

from collections.abc import Iterable

from meantime.kernel.lifecycle import Status
from meantime.kernel.search_query import GROUPS, QUALIFIERS, SearchQuery, Term

from .dependencies import Dependencies
from .routing import RequestContext
from .row_schemas import Completion, Completions
from .task_requests import SearchText

MOST = 20
_AGO = {"1h": "the last hour", "1d": "the last day", "7d": "the last week", "30d": "the last month"}


async def complete_search(deps: Dependencies, asked: RequestContext[SearchText, None]) -> Completions:
    """Only the last word is completed; a caller that is bound to a thread is shown its own names."""
    word = (asked.params.q or "").split(" ")[-1]
    minus = "-" if word.startswith("-") else ""
    name, colon, value = word.removeprefix("-").partition(":")
    if not colon:
        found = [
            Completion(f"{minus}{one}:", "", "qualifier")
            for one in QUALIFIERS
            if one.startswith(name.lower())
        ]
        return Completions(found[:MOST])
    before, comma, begun = value.rpartition(",")
    known = await _known(deps, name.lower(), asked.thread)
    begun = begun.strip('"').casefold()
    items = [
        Completion(f"{minus}{name.lower()}:{before}{comma}{_written(name, text)}", label, name.lower())
        for text, label in known
        if text.casefold().startswith(begun)
    ]
    return Completions(items[:MOST])


def _written(name: str, value: str) -> str:
    return str(SearchQuery((Term(name, (value,)),))).partition(":")[2]


async def _known(deps: Dependencies, name: str, thread: str | None) -> Iterable[tuple[str, str]]:
    match name:
        case "status":
            return [
                *((status, "") for status in Status),
                *((group, ", ".join(GROUPS[group])) for group in GROUPS),
            ]
        case "kind":
            return [(kind, "") for kind in deps.owner.about().runners]
        case "agent":
            return [(one.name, one.description) for one in deps.owner.about().agents]
        case "thread":
            return [(one.id, f"{one.active} active") for one in (await deps.tasks.overview(thread)).threads]
        case "batch":
            found = (await deps.tasks.overview(thread)).batches
            return [(one.id, f"{one.ended} of {one.total}") for one in found]
        case "since" | "until":
            return _AGO.items()
        case _:
            return ()
