"""F14: how long a tool may take, learned from how long it took before."""

from __future__ import annotations

import re
import statistics
import threading
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task

KEPT = 20  # durations that count, of calls that are alike
MOST = 1_000  # different kinds of calls that are remembered
MAX_ARGUMENTS = 10_000  # bytes: what is bigger is hardly ever the same again, and dear to compare
_SHOWN = 100
_CHANGES_FOLDER = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_ASSIGNMENT = re.compile(r"\w+=\S*\Z")
_SUBCOMMAND = re.compile(r"[\w.:@-]+\Z")
_PREFIXES = frozenset({"env", "exec", "nice", "nohup", "sudo", "time"})


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


class Estimates:
    """Medians of the last durations; bounded, and safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._durations: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def learn(self, tool: str, like: str | None, seconds: float) -> None:
        if like is None:
            return
        key = (tool, like)
        with self._lock:
            known = self._durations.get(key)
            if known is None:
                known = self._durations[key] = deque(maxlen=KEPT)
                if len(self._durations) > MOST:
                    self._durations.popitem(last=False)
            else:
                self._durations.move_to_end(key)
            known.append(seconds)

    def learn_from(self, tasks: Iterable[Task]) -> None:
        """Completed tasks of plugins, in the order in which they ended."""
        for task in tasks:
            tool, like, seconds = task.meta.get("tool"), task.meta.get("like"), task.run.duration
            if task.status is Status.COMPLETED and tool and like is not None and seconds is not None:
                self.learn(tool, like, seconds)

    def median(self, tool: str, like: str | None) -> float | None:
        with self._lock:
            known = self._durations.get((tool, like)) if like is not None else None
            return statistics.median(known) if known else None

    def __len__(self) -> int:
        return len(self._durations)
