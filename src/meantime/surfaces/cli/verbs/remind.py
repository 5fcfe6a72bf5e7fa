"""`meantime remind`: a word to a conversation later; the list of those that are still to come."""

from __future__ import annotations

import time

from meantime.surfaces.caller.caller_thread import own_thread
from meantime.surfaces.cli.local_time import moment
from meantime.surfaces.cli.parameter_types import DELAY, DURATION
from meantime.surfaces.cli.task_search import CANDIDATES, REMINDER
from meantime.surfaces.cli.verb import argument, as_json, daemon, option, say_json, verb
from meantime.surfaces.daemon_client.daemon_client import Daemon, part
from meantime.surfaces.terminal import task_format
from meantime.surfaces.terminal.errors import NOT_FOUND, USAGE, CliError, DaemonRefused
from meantime.surfaces.terminal.std_streams import echo
from meantime.surfaces.terminal.terminal_text import plain

TYPE_CHECKING = False  # to load `typing` takes 2 ms
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HINT = "For example: meantime remind 20m look at the deploy"
PAGE = 1_000  # as many as the daemon gives at once
_UNITS = {
    *("s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute", "minutes"),
    *("h", "hr", "hrs", "hour", "hours", "d", "day", "days", "w", "week", "weeks"),
}
_NOW = "0.0s"
_COLUMNS = ("ID", "IN", "THREAD", "TEXT")


@verb("remind")
@argument("words", nargs=-1, metavar="[DELAY] TEXT…")
@option("--at", metavar="TIME", help="At 17:30, or at 2026-05-01T17:30 with an offset or in local time.")
@option("--thread", metavar="ID", help="The conversation; by default that of the agent that asks.")
@option("-l", "--list", "lists", is_flag=True, help="List the reminders that are still to come, of all.")
@option("--cancel", "gone", metavar="ID", help="Cancel a reminder.")
@as_json
def command(
    words: tuple[str, ...], at: str | None, thread: str | None, lists: bool, gone: str | None, as_json: bool
) -> None:
    """Tell a conversation TEXT later, once: after DELAY (90s, 20m, 1h30m), or --at a time.

    It survives restarts. One that comes late, as after a sleep of the machine, says how late.
    """
    if sum((bool(words) or at is not None, lists, gone is not None)) != 1:
        raise CliError("Give a DELAY and a TEXT, or --list, or --cancel ID.", HINT, USAGE)
    for name, id in (("--cancel", gone), ("--thread", thread)):
        if id is not None and not id.strip():
            raise CliError(f"{name} names nothing.", "`meantime remind --list` shows ids and threads.", USAGE)
    with_daemon = daemon()
    if lists:
        _list(with_daemon, thread, as_json=as_json)
        return
    if gone is not None:
        answer = _cancelled(with_daemon, gone)
    else:
        thread = own_thread() if thread is None else thread
        answer = with_daemon.post(f"/v1/threads/{part(thread)}/schedules", _order(list(words), at))
    if as_json:
        say_json(answer)
    elif gone is not None:
        echo(f"cancelled {answer['id']} ({_text(answer)})")
    else:
        wait = _wait(answer)
        echo(f"{answer['id']}: {plain(answer['thread'])} is told {'now' if wait == _NOW else f'in {wait}'}")


def _order(words: list[str], at: str | None) -> dict[str, Any]:
    order: dict[str, Any] = {}
    if at is not None:
        if words and _is_duration(words[0]):
            both = f"To begin the text with {plain(words[0])!r}, quote the whole text."
            raise CliError("Give a DELAY or --at, not both.", both, USAGE)
        order["at"] = moment(at, time.time())
    else:
        try:
            order["delay"] = DELAY.read(words[0])
        except ValueError as problem:
            raise CliError(str(problem), HINT, USAGE) from None
        _check_unit(words)
        words = words[1:]
    if not words:
        raise CliError("Nothing to be reminded of.", HINT, USAGE)
    order["text"] = " ".join(words).encode(errors="surrogateescape").decode(errors="replace")
    return order


def _check_unit(words: list[str]) -> None:
    """`20 minutes call Ann` would come after 20 seconds, and begin with "minutes"."""
    number, unit = words[0], words[1].lower() if len(words) > 1 else ""
    if number[-1:].isdigit() and unit in _UNITS:
        problem = f"'{number} {unit}' is not a delay: write {number}{unit[0]}."
        raise CliError(problem, f"If the text begins with {unit!r}, quote the whole text.", USAGE)


def _is_duration(word: str) -> bool:
    try:
        DURATION.read(word)
    except ValueError:
        return False
    return True


def _cancelled(with_daemon: Daemon, ref: str) -> Any:
    """The reminder with this id; otherwise the one that is still to come and whose id begins so."""
    try:
        return with_daemon.post(f"/v1/schedules/{part(ref)}/cancel", {})
    except DaemonRefused as refused:
        if refused.status != 404:
            raise
    begun = REMINDER + ref.removeprefix(REMINDER)
    known = _pending(with_daemon) if begun != REMINDER else ()
    found = [one for one in known if one["id"].startswith(begun)]
    if len(found) == 1:
        return with_daemon.post(f"/v1/schedules/{part(found[0]['id'])}/cancel", {})
    if found:
        lines = [f"{one['id']}  {_text(one)}" for one in found[:CANDIDATES]]
        if len(found) > CANDIDATES:
            lines.append(f"… and {len(found) - CANDIDATES} more")
        what = f'"{plain(ref)}" matches {len(found)} reminders, be more specific:'
        raise CliError(what, "\n".join(lines), NOT_FOUND)
    raise CliError(f"No reminder {plain(ref)!r}.", "`meantime remind --list` lists them.", NOT_FOUND)


def _pending(with_daemon: Daemon) -> Iterator[Any]:
    """All that are still to come, read page by page."""
    offset = 0
    while page := with_daemon.get("/v1/schedules", limit=PAGE, offset=offset)["schedules"]:
        yield from page
        if len(page) < PAGE:
            return
        offset += PAGE


def _list(with_daemon: Daemon, thread: str | None, *, as_json: bool) -> None:
    answer = with_daemon.get("/v1/schedules", limit=PAGE, thread=thread)
    if as_json:
        say_json(answer)
        return
    rows = [(one["id"], _wait(one), plain(one["thread"]), _text(one)) for one in answer["schedules"]]
    echo("\n".join(task_format.table(_COLUMNS, rows, shrink=3)) if rows else "no reminders")


def _wait(schedule: Any) -> str:
    due = task_format.moment(schedule["dueAt"])
    return task_format.span(max(0.0, (due or 0.0) - time.time()))


def _text(schedule: Any) -> str:
    return plain(" ".join(schedule["text"].split()))
