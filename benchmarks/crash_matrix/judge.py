"""The judge: the effect of a crash on the tasks of one subject, over all rounds. No files, no clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    """

    begun: dict[str, int]
    finished: dict[str, int]
    told: dict[str, int]
    woken: dict[str, int]
    state: dict[str, str]


class Verdict(NamedTuple):
    """Counts of tasks over all rounds."""

    tasks: int
    told: int  # at least once
    woken: int  # before anybody said something
    told_twice: int
    run_twice: int
    finished: int  # the work came to its end, before or after the restart
    for_ever: int  # the subject says that it runs, and nothing runs


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
    )


def _is_for_ever(each: Evidence, task: str) -> bool:
    """Work that finished may be on its way to be noticed; its subject had until the end of the round."""
    return each.state.get(task, "").lower() in ACTIVE
