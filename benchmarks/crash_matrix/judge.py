"""The judge: the effect of a crash on the tasks of one subject, over all rounds. No files, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

TASKS = ("alpha", "beta")
# How subjects call work that has not ended yet.
ACTIVE = frozenset({"queued", "pending", "running", "working", "submitted", "busy", "waiting", "in_progress"})


class Evidence(NamedTuple):
    """One round: two tasks were started, everything was killed in mid-work, and started again.

    begun: how often the work of each task began, by the ledger outside.
    finished: how often it came to its end.
    told: how often the model had each ending before it, at most, in one question after the crash.
    woken: the same, before anybody said something.
    state: what the subject says of each task at the end; a task that it does not know is missing.
    heard: the endings in each question after the crash, in their order; a question that has the same ones as
        the one before is left out. Empty in rows that were played before it was kept.
    words: the texts of the endings in the last question, and how often each is there.
    """

    begun: dict[str, int]
    finished: dict[str, int]
    told: dict[str, int]
    woken: dict[str, int]
    state: dict[str, str]
    heard: Sequence[list[str]] = ()
    words: Mapping[str, int] = MappingProxyType({})


class Verdict(NamedTuple):
    """Counts of tasks over all rounds."""

    tasks: int
    told: int  # at least once
    woken: int  # before anybody said something
    told_twice: int
    run_twice: int
    finished: int  # the work came to its end, before or after the restart
    for_ever: int  # the subject says that it runs, and nothing runs
    moved: int | None  # an ending was gone from a later question, or at another place; None is not known


def told_in(questions: Iterable[Sequence[str]], telling: str) -> dict[str, int]:
    """How often each task's ending is in one question, at most.

    questions: the texts of each question that are not the model's own, after the restart.
    telling: a pattern with the group `task`.
    """
    most: dict[str, int] = dict.fromkeys(TASKS, 0)
    for texts in questions:
        found = [match["task"] for text in texts for match in re.finditer(telling, text)]
        for task in TASKS:
            most[task] = max(most[task], found.count(task))
    return most


def heard_in(questions: Iterable[Sequence[str]], telling: str) -> list[list[str]]:
    """The endings of each question, in their order, where they have changed."""
    heard: list[list[str]] = []
    for texts in questions:
        found = [match["task"] for text in texts for match in re.finditer(telling, text)]
        if found != (heard[-1] if heard else []):
            heard.append(found)
    return heard


def judged(rounds: Sequence[Evidence]) -> Verdict:
    pairs = [(each, task) for each in rounds for task in TASKS]
    return Verdict(
        tasks=len(pairs),
        told=sum(each.told.get(task, 0) >= 1 for each, task in pairs),
        woken=sum(each.woken.get(task, 0) >= 1 for each, task in pairs),
        told_twice=sum(each.told.get(task, 0) >= 2 for each, task in pairs),
        run_twice=sum(each.begun.get(task, 0) >= 2 for each, task in pairs),
        finished=sum(each.finished.get(task, 0) >= 1 for each, task in pairs),
        for_ever=sum(_is_for_ever(each, task) for each, task in pairs),
        moved=None if any(_is_unheard(each) for each in rounds) else sum(_moved(each) for each in rounds),
    )


def _is_unheard(each: Evidence) -> bool:
    return any(each.told.values()) and not each.heard


def _moved(each: Evidence) -> int:
    """A conversation only grows: what it was told stays, at its place."""
    gone: set[str] = set()
    for before, after in pairwise(each.heard):
        gone |= {task for place, task in enumerate(before) if after[place : place + 1] != [task]}
    return len(gone)


def _is_for_ever(each: Evidence, task: str) -> bool:
    """Work that finished may be on its way to be noticed; its subject had until the end of the round."""
    return each.state.get(task, "").lower() in ACTIVE
