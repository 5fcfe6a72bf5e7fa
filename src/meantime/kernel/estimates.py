"""Usual durations, learned from completed work: of the row, of `ps`, of the API and of plugins.

Work that is alike takes about as long. A task is looked up by the narrowest description of it that was seen
often enough, and otherwise by a wider one: its tool with like arguments, then its title, then its agent or
tool. The median of the newest durations is not moved by one that was stuck.
"""

from __future__ import annotations

import re
import shlex
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from .lifecycle import Status
from .limits import WATCH
from .model import Task

KEPT = 20  # durations that count, of work that is alike
MOST = 2_000  # different kinds of work that are remembered; the one that ended longest ago goes first
ENOUGH = 2  # durations below which a wider description is preferred
MAX_ARGUMENTS = 10_000  # bytes: what is bigger is hardly ever the same again, and dear to compare
_SHOWN = 100
_CHANGES_FOLDER = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_ASSIGNMENT = re.compile(r"\w+=\S*\Z")
_SUBCOMMAND = re.compile(r"[\w.:@-]+\Z")
# Many unlike commands begin with the syntax of a shell, or with a program that runs a text.
_SYNTAX = frozenset({"for", "while", "until", "if", "case", "select", "{", "(", "[", "[[", "!", "eval"})
_INTERPRETERS = frozenset({"sh", "bash", "dash", "zsh", "python", "python3", "node", "perl", "ruby"})
_PREFIXES = frozenset({"env", "exec", "nice", "nohup", "sudo", "time"})

Key: TypeAlias = tuple[str, ...]


class Usual(Struct, frozen=True):
    """How long work like this usually takes, and from how many runs that is known."""

    seconds: float
    runs: int

    def ratio(self, seconds: float) -> float | None:
        """How many times as long as usual this is; None where the usual duration is nothing."""
        return seconds / self.seconds if self.seconds > 0 else None


class Estimates:
    """The newest durations by key. Bounded; not safe to use from several threads at once."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, _Durations] = OrderedDict()

    def learn(self, key: Key, seconds: float) -> None:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Durations()
            if len(self._known) > MOST:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        known.add(seconds)

    def learn_from(self, task: Task) -> None:
        """Only completed runs say how long the work takes; a failure may have come at once."""
        if task.status is Status.COMPLETED and task.run.duration is not None:
            for key in keys(task):
                self.learn(key, task.run.duration)

    def usual(self, task: Task) -> Usual | None:
        """By the narrowest key that was seen often enough, otherwise by the widest that was seen."""
        found: Usual | None = None
        for key in keys(task):
            known = self.of(key)
            if known is not None:
                found = known
                if known.runs >= ENOUGH:
                    break
        return found

    def of(self, key: Key) -> Usual | None:
        known = self._known.get(key)
        return None if known is None else Usual(known.median, known.runs)

    def __len__(self) -> int:
        return len(self._known)


class _Durations:
    __slots__ = ("newest", "runs")

    def __init__(self) -> None:
        self.newest: deque[float] = deque(maxlen=KEPT)
        self.runs = 0

    def add(self, seconds: float) -> None:
        self.newest.append(seconds)
        self.runs += 1

    @property
    def median(self) -> float:
        """When somebody asks: every ending adds one, and few are asked about."""
        ordered = sorted(self.newest)
        return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def keys(task: Task) -> Iterable[Key]:
    """The descriptions of a task, narrowest first. A watch has none: how long it takes depends on what it
    waits for."""
    kind, name = task.work.kind, task.work.name
    if kind == WATCH:
        return
    tool, like = task.meta.get("tool"), task.meta.get("like")
    if isinstance(tool, str) and isinstance(like, str):
        yield tool_key(tool, like)
    if task.description:  # the name of a command is its whole text, which hardly ever comes again
        yield (kind, "" if kind == "shell" else name[:_SHOWN], "title", task.description[:_SHOWN])
    if kind == "shell":
        if head := _head(task):
            yield (kind, head)
    elif name:
        yield (kind, name[:_SHOWN])


def tool_key(tool: str, like: str) -> Key:
    """Calls of a plugin's tool that are alike."""
    return ("plugin", tool, like)


def alike(arguments: Mapping[str, Any]) -> str | None:
    """The common key of calls of one tool that take about as long: the same command head, or the same
    arguments. None where they are too big to say.
    """
    command = arguments.get("command")
    if isinstance(command, str):
        return command_head(command)
    if sum(len(value) for value in arguments.values() if isinstance(value, str | bytes)) > MAX_ARGUMENTS:
        return None
    try:
        text = msgspec.json.encode(arguments, order="sorted")
    except (TypeError, ValueError, RecursionError):
        return None
    if len(text) > MAX_ARGUMENTS:
        return None
    return text.decode() if len(text) <= _SHOWN else blake2b(text, digest_size=16).hexdigest()


def _head(task: Task) -> str:
    given: object = task.work.input
    command: object = cast("dict[str, Any]", given).get("command") if isinstance(given, dict) else None
    if isinstance(command, list):
        words = [str(word) for word in cast("list[object]", command)[:8]]
        command = shlex.join(words)
    head = command_head(command) if isinstance(command, str) else ""
    first, _, rest = head.partition(" ")
    is_vague = first in _SYNTAX or (not rest and first in _INTERPRETERS)
    return "" if is_vague else head


def command_head(command: str) -> str:
    """`CI=1 /usr/bin/npm install --quiet x` and `cd app && npm install` are both `npm install`."""
    command = command[:MAX_ARGUMENTS]
    while (found := _CHANGES_FOLDER.match(command)) is not None:
        command = command[found.end() :]
    words = command.split()
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _PREFIXES):
        words.pop(0)
    if not words:
        return ""
    head = [words[0].rpartition("/")[2], *(word for word in words[1:2] if is_subcommand(word))]
    return " ".join(head)[:_SHOWN]


def is_subcommand(word: str) -> bool:
    return _SUBCOMMAND.match(word) is not None and not word.startswith("-")
