"""Which tasks a person means: a search in words, an id or its prefix, or a name."""

from __future__ import annotations

import re
from itertools import islice

from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal.errors import NOT_FOUND, USAGE, CliError, DaemonRefused
from meantime.surfaces.terminal.task_format import ACTIVE, Wire, bare, short_ids, status, title
from meantime.surfaces.terminal.terminal_text import plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

REMINDER = "s_"  # that ids of reminders begin with
CANDIDATES = 10  # that an ambiguous prefix is shown with
LONGEST_NAME = 1_000  # characters that can be searched for
PAGE = 200  # as many as the daemon gives at once
ENDED = ("completed", "failed", "cancelled", "timed_out", "lost")
_GROUPS: dict[str, tuple[str, ...]] = {
    "active": ACTIVE,
    "ended": ENDED,
    "done": ENDED,
    "error": ("failed", "timed_out", "lost"),
    "timeout": ("timed_out",),
}
_ASKED = {  # the API's word that a state is found by
    **dict.fromkeys(ACTIVE, "running,resumed"),
    **dict.fromkeys(_GROUPS["error"], "error"),
    "completed": "completed",
    "cancelled": "cancelled",
}


def query(words: Sequence[str]) -> str:
    """The words of a command line as one search, in the grammar of the daemon, which reads it. The shell took
    the quotation marks of a text that has spaces."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if not re.search(r"\s", word) or '"' in word:
        return word
    name = re.match(r"-?[A-Za-z]+:", word)
    start = name.end() if name else 0
    return f'{word[:start]}"{word[start:]}"'


def states(said: str) -> tuple[str, ...]:
    """The states that a person's words mean."""
    found: dict[str, None] = {}
    for word in said.split(","):
        word = word.strip().lower().replace("-", "_")
        if word in _ASKED or word in _GROUPS:
            found.update(dict.fromkeys(_GROUPS.get(word, (word,))))
        elif word:
            known = ", ".join([*ACTIVE, *ENDED, "active", "ended"])
            raise CliError(f"There is no status {word!r}.", f"Use one of: {known}.", USAGE)
    return tuple(found)


def tasks(daemon: Daemon, wanted: Sequence[str], **params: Any) -> Iterator[Wire]:
    """Tasks in one of the states, newest first; read page by page, as far as somebody takes them."""
    asked = ",".join(dict.fromkeys(",".join(_ASKED[state] for state in wanted).split(",")))
    offset, seen = 0, set[str]()
    while True:
        page = daemon.get("/v1/tasks", status=asked, limit=PAGE, offset=offset, **params)
        for task in page["tasks"]:
            if task["state"] in wanted and task["id"] not in seen:  # pages move while tasks end
                seen.add(task["id"])
                yield task
        offset += PAGE
        if offset >= page["total"]:
            return


def searched(daemon: Daemon, q: str, *, as_rows: bool, **params: Any) -> Iterator[Wire]:
    """Tasks, or their rows, that fit a search, newest first; read page by page, as far as somebody takes
    them."""
    more: dict[str, Any] = {"format": "rows"} if as_rows else {"offset": 0}
    seen = set[str]()
    while True:
        page = daemon.get("/v1/tasks", q=q, limit=PAGE, **more, **params)
        for one in page["rows" if as_rows else "tasks"]:
            if one["id"] not in seen:  # pages by offset move while tasks come
                seen.add(one["id"])
                yield one
        if as_rows:
            more["cursor"] = page["cursor"]
        else:
            more["offset"] += PAGE
        if more.get("cursor") is None and more.get("offset", page["total"]) >= page["total"]:
            return


def task(daemon: Daemon, ref: str) -> Wire:
    """Found by its id. Otherwise by a unique prefix of one, or by a name that no other task has, or no other
    active one: the newest run is meant, not an earlier one. A name of one task that is a prefix of another's
    id means neither.
    """
    found: Wire | None = None
    ids: list[str] = []
    try:
        found = daemon.get(f"/v1/tasks/{part(ref)}")
    except DaemonRefused as refused:
        if refused.code != "ambiguous" and refused.status != 404:
            raise
        candidates: Any = refused.body.get("candidates") or []
        ids = sorted(str(id) for id in candidates)
    if found is not None:
        if _is_id(ref, found["id"]):
            return found
        ids = [found["id"]]
    named = _named(daemon, ref)
    active = [one for one in named if one["state"] in ACTIVE]
    meant = active if len(active) == 1 else named
    ids = list(dict.fromkeys([*ids, *(one["id"] for one in meant)]))
    if not ids:
        raise CliError(f"No task {plain(ref)!r}.", _elsewhere(ref), NOT_FOUND)
    if len(ids) > 1:
        raise _several(daemon, ref, ids)
    return daemon.get(f"/v1/tasks/{part(ids[0])}") if found is None else found


def _is_id(ref: str, id: str) -> bool:
    """Whether it is the whole id, or that of one of its notices, and not the beginning of one."""
    return bare(ref) == bare(id) or ref.startswith(f"{id}.")


def _elsewhere(ref: str) -> str:
    if ref.startswith(REMINDER):
        return "A reminder is cancelled by `meantime remind --cancel`; `meantime remind --list` lists them."
    return "`meantime ps -a` lists them."


def _named(daemon: Daemon, name: str) -> list[Wire]:
    if not name.strip() or len(name) > LONGEST_NAME:
        return []
    found = tasks(daemon, [*ACTIVE, *ENDED], search=name)
    return [one for one in islice(found, PAGE) if one["description"] == name]


def _several(daemon: Daemon, ref: str, ids: list[str]) -> CliError:
    shown = short_ids(ids)
    lines: list[str] = []
    for id in ids[:CANDIDATES]:
        try:
            found = daemon.get(f"/v1/tasks/{part(id)}")
        except DaemonRefused:
            continue
        lines.append(f"{shown[id]}  {status(found)}  {title(found)}".rstrip())
    if len(ids) > CANDIDATES:
        lines.append(f"… and {len(ids) - CANDIDATES} more")
    what = f'"{plain(ref)}" matches {len(ids)} tasks, be more specific:'
    return CliError(what, "\n".join(lines), NOT_FOUND)
