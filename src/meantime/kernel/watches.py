"""Watches: work that looks at something, and tells its thread each time it finds what it looks for.

A watch keeps its cursor, how far it has looked, in its task's row. The cursor is written in one transaction
with the notice of what was found, so a crash leaves both or neither.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import AddressValueError, IPv6Address
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .argument_checks import check_all, check_path, check_text, shown
from .constraints import FLAG, check_fields, one_of, seconds, whole
from .due_times import delay_of
from .durations import duration
from .errors import InvalidInput
from .event_notices import NoticeRate
from .ids import check_id
from .limits import WATCH
from .model import Json, Task, Work
from .plain_text import cut
from .work import OrderOf

KIND = WATCH
STREAMS = one_of("both", "stdout", "stderr")
MOST_EXPRESSION = 1_000  # characters
MOST_CONTEXT = 20  # lines before and after a match
MOST_COMMAND = 10_000  # characters
LEAST_EVERY = 0.1  # seconds
NAME = 200  # characters of what names a watch

_CONTEXT = whole(0, MOST_CONTEXT)
_EVERY = seconds(LEAST_EVERY)
_DEADLINE = seconds(0)


def _expression(value: object, name: str) -> str:
    return check_text(value, name, MOST_EXPRESSION)


class WatchSpec(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A watch as its task's row has it."""

    source: str
    of: Json  # the id, path, address, command or pid
    match: Annotated[str, _expression] = ""
    context: Annotated[int, _CONTEXT] = 0
    stream: Annotated[str, STREAMS] = "both"
    once: Annotated[bool, FLAG] = False
    every: Annotated[float | None, _EVERY] = None
    until: Annotated[str, _expression] = ""
    deadline: Annotated[float | None, _DEADLINE] = None
    new: Annotated[bool, FLAG] = False
    value: Annotated[str | None, _expression] = None
    cwd: str | None = None
    begin: int = 0  # of a log: the offset that it is searched from
    boot: str = ""  # the start of the machine, and the monotonic time, in which it was started
    began: float | None = None  # None where it was delayed: it begins with its run
    started: int = 0  # of a process: its start, in ticks since that of the machine


class WatchCursor(Struct, frozen=True, omit_defaults=True):
    """How far a watch has looked, and what it has found so far."""

    at: int = 0  # the offset of the first byte that was not searched
    matches: int = 0
    unsearched: int = 0  # bytes that were gone before they could be searched
    state: Json = None  # of what has states: the last one seen
    last: str | None = None  # the line that ends it, if `at` is behind it: only the ending is left to tell
    trouble: str = ""  # why it could not look the last time


def spec_of(task: Task) -> WatchSpec:
    return msgspec.convert(task.work.input, WatchSpec)


def cursor_of(task: Task) -> WatchCursor | None:
    return None if task.run.cursor is None else msgspec.convert(task.run.cursor, WatchCursor)


stored = msgspec.to_builtins


def rate_for(task: Task, rate: NoticeRate) -> NoticeRate:
    """The rate of this task's notices: a watch may ask for fewer."""
    if task.work.kind != KIND:
        return rate
    every = cast("dict[str, Any]", task.work.input).get("every") or 0.0
    return NoticeRate(max(rate.seconds, every), rate.per_minute)


class Watch:
    """Work that looks at something and tells its thread whenever it finds what it looks for.

    Name one thing to look at:

    log: a task: each line of its output that `match` fits is told. With `until` alone, the line that ends
        the watch.
    file: a file or a folder: told when it appears, changes or goes. With `match`, each line of the file
        that it fits; of a folder, only entries whose name it fits. With `until`, too, lines are searched.
    port: a port of this machine, or "host:port": "open" or "closed".
    url: an http or https address: its status. With `value`, a value of its JSON, such as "jobs.0.state".
    command: a command that is run again and again; a text goes to /bin/sh. Its exit code and its output.
    pid: a process that is not a task: "running" or "gone".
    task: another task: its status. Also `thread` (how many tasks are active) and `batch` (how many ended).

    How:

    match: a regular expression (RE2): what is told. Without it, of what has states, every change is told.
    context: lines to tell before a matching line, and after it as far as they are printed by then.
    stream: of a log, "stdout" or "stderr" alone.
    new: of a log or a file, search only what comes from now on.
    once: the first match ends the watch.
    every: seconds, a text such as "1m", or a timedelta; how often to look, and to tell, at most.
    until: an expression; a line or a state that it fits ends the watch.
    deadline: a duration as `every` is; after so long it ends, whatever was found.
    """

    __slots__ = ("spec",)

    def __init__(
        self,
        *,
        log: object = None,
        file: object = None,
        port: int | str | None = None,
        url: str | None = None,
        command: str | Sequence[str] | None = None,
        pid: int | None = None,
        task: object = None,
        thread: object = None,
        batch: object = None,
        match: str = "",
        context: int = 0,
        stream: str = "both",
        new: bool = False,
        value: str | None = None,
        cwd: object = None,
        once: bool = False,
        every: float | str | timedelta | None = None,
        until: str = "",
        deadline: float | str | timedelta | None = None,
    ) -> None:
        given = {
            "log": log,
            "file": file,
            "port": port,
            "url": url,
            "command": command,
            "pid": pid,
            "task": task,
            "thread": thread,
            "batch": batch,
        }
        named = [(source, of) for source, of in given.items() if of is not None]
        if len(named) != 1:
            raise InvalidInput(
                f"A watch looks at one thing, not {len(named)}.", hint=f"Give one of: {', '.join(given)}."
            )
        source, of = named[0]
        spec = check_fields(
            WatchSpec(
                source=source,
                of=_CHECKS[source](of, source),
                match=match,
                context=context,
                stream=stream,
                once=once,
                every=delay_of(every, "every"),
                until=until,
                deadline=delay_of(deadline, "deadline"),
                new=new,
                value=value,
                cwd=None if cwd is None else check_path(cwd, "cwd"),
            )
        )
        self.spec = _fitting(spec)

    def order(self) -> OrderOf[str]:
        """The work as the runtime stores it."""
        return OrderOf(Work(KIND, title_of(self.spec), stored(self.spec)))

    def __repr__(self) -> str:
        return f"Watch({title_of(self.spec)!r})"


def title_of(spec: WatchSpec, name: str = "") -> str:
    """`name`: of a task, which says more than its id."""
    of = " ".join(cast("list[str]", of)) if type(of := spec.of) is list else str(of)
    looked = f"{spec.source} {name or of}"
    until = f" until {spec.until}" if spec.until else ""
    return cut(f"{looked}: {spec.match}" if spec.match else f"{looked}{until}", NAME)


def _fitting(spec: WatchSpec) -> WatchSpec:
    """Options that mean nothing for their source are refused: what was asked for would not happen."""
    if spec.source == "log" and not spec.match and not spec.until:
        raise InvalidInput(
            "A watch of a log needs match or until.",
            hint='Say which lines are told: match=r"ERROR|panic"; or which one ends it: until="ready".',
        )
    for name, sources in _ONLY.items():
        if spec.source not in sources and getattr(spec, name) != getattr(_PLAIN, name):
            raise InvalidInput(
                f"{name} is not for a {spec.source}.", hint=f"It is for: {', '.join(sources)}."
            )
    if spec.source == "file" and not spec.match and not spec.until:
        for name in ("new", "context"):
            if getattr(spec, name):
                raise InvalidInput(
                    f"{name} is for the lines of a file, which match or until asks for.",
                    hint='Say which lines are told: match=r"ERROR|panic".',
                )
    return spec


_PLAIN = WatchSpec(source="", of=None)
_ONLY = {
    "context": ("log", "file"),
    "stream": ("log",),
    "new": ("log", "file"),
    "value": ("url",),
    "cwd": ("command",),
}


def _id(value: object, name: str) -> str:
    """A handle, a task or a thread is named by its id."""
    return check_id(getattr(value, "id", value), name)


def _path(value: object, name: str) -> str:
    path = check_path(value, name)
    if not path.startswith("/"):
        raise InvalidInput(
            f"{name}={shown(path)} is not an absolute path.", hint="The owner has a folder of its own."
        )
    return path


def _port(value: object, name: str) -> str:
    """ "host:port"; a number alone is of this machine."""
    text = str(value) if type(value) in (int, str) else ""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not _is_host(host) or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise InvalidInput(f"{name}={shown(value)} is not a port.", hint='Write 8080 or "host:8080".')
    return f"[{host}]:{int(port)}" if ":" in host else f"{host}:{int(port)}"


def _is_host(text: str) -> bool:
    """A name that could never be found would be "closed" for ever."""
    if ":" not in text:
        return len(text) <= 255 and all(sign.isalnum() or sign in "-._" for sign in text)
    try:
        return bool(IPv6Address(text))
    except AddressValueError:
        return False


def _url(value: object, name: str) -> str:
    text = check_text(value, name, 4_000)
    try:
        found = urlsplit(text)
        has_login, host, port = "@" in found.netloc, found.hostname, found.port
    except ValueError:  # brackets or a port that mean nothing
        has_login, host, port = "@" in text, None, None
    if has_login:  # what is watched is stored and told: a password must not be in it, nor in this text
        raise InvalidInput("A watch sends no login: use a command, such as curl.")
    is_http = text.lower().startswith(("http://", "https://")) and not any(sign <= " " for sign in text)
    if not is_http or not host or port == 0:
        raise InvalidInput(
            f"{name}={shown(text)} is not an http or https address.", hint='Write "http://host:8080/path".'
        )
    return text


def _command(value: object, name: str) -> str | list[str]:
    if isinstance(value, str):
        text = check_text(value, name, MOST_COMMAND)
        if not text.strip():
            raise InvalidInput(f"{name} is empty.", hint='Write command="gh pr checks 7".')
        return text
    words = check_all(value, str, name)
    if not words:
        raise InvalidInput(f"{name} is empty.", hint='Write command=["gh", "pr", "checks"].')
    return [check_text(word, f"a word of {name}", MOST_COMMAND) for word in words]


def _pid(value: object, name: str) -> int:
    if type(value) is not int or not 0 < value < 1 << 31:
        raise InvalidInput(f"{name}={shown(value)} is not the number of a process.")
    return value


_CHECKS = {
    "log": _id,
    "file": _path,
    "port": _port,
    "url": _url,
    "command": _command,
    "pid": _pid,
    "task": _id,
    "thread": _id,
    "batch": _id,
}


# -- words


def description_of(spec: WatchSpec) -> str:
    """Everything that was asked for, in a line: what it looks at, what it tells, and what ends it."""
    of = shlex.join(cast("list[str]", of)) if type(of := spec.of) is list else str(of)
    parts = [
        f"{spec.source} {of}",
        f"match {spec.match}" if spec.match else "",
        f"value {spec.value}" if spec.value else "",
        "once" if spec.once else "",
        f"until {spec.until}" if spec.until else "",
        f"every {_span(spec.every)}" if spec.every is not None else "",
        f"deadline {_span(spec.deadline)}" if spec.deadline is not None else "",
        f"in {spec.cwd}" if spec.cwd else "",
    ]
    return " · ".join(part for part in parts if part)


def _span(seconds: float) -> str:
    return duration(seconds) if seconds >= 60 else f"{seconds:g}s"


def so_far(task: Task) -> str:
    """How often a watch that runs has matched."""
    cursor = cursor_of(task) or WatchCursor()
    return summary_of(cursor, "" if cursor.matches else "yet")


def ending_of(spec: WatchSpec, cursor: WatchCursor, why: str) -> str:
    """How a watch ended. One that looked for nothing but its end has found that."""
    if not spec.match and not cursor.matches and why == until_words(spec):
        return f"found {spec.until}{_not_looked_at(cursor)}"
    return summary_of(cursor, why)


def until_words(spec: WatchSpec) -> str:
    return f"until {spec.until}"


def summary_of(cursor: WatchCursor, why: str = "") -> str:
    """How often a watch matched, why it is over, and what it could not look at."""
    times = {0: "nothing matched", 1: "matched once"}.get(cursor.matches, f"matched {cursor.matches} times")
    return f"{times}{' ' + why if why else ''}{_not_looked_at(cursor)}"


def _not_looked_at(cursor: WatchCursor) -> str:
    lost = f"; {cursor.unsearched:,} bytes were not searched" if cursor.unsearched else ""
    return f"{lost}; {cursor.trouble}" if cursor.trouble else lost


def counted(cursor: WatchCursor, matches: int, **more: Any) -> WatchCursor:
    return replace(cursor, matches=cursor.matches + matches, **more)
