"""Bugs in the handling of agents, planted from outside: `agentwork` has the one that its environment says."""

from __future__ import annotations

import os
import signal
from typing import Any

from msgspec.structs import replace

from meantime.kernel.model import Task
from meantime.runners.agent import agent_run, checkpoint
from meantime.runtime.follow_ups import QUEUED, FollowUps

from . import works

PLANT = "MEANTIME_FAULT_PLANT"
LAST = "MEANTIME_FAULT_LAST"  # the fact after which it dies, such as "ran asks.1"


def die_after(last: str) -> None:
    say = works.say

    def said(what: str, thread: str, id: str, note: str = "") -> None:
        say(what, thread, id, note)
        if f"{what} {id}" == last:
            os.kill(os.getpid(), signal.SIGKILL)

    works.say = said


def follow_up_in_memory() -> None:
    """What is said to a running agent is kept by its owner alone, until the run has ended."""
    said: dict[str, str] = {}

    async def say(self: FollowUps, task: Task, text: object) -> str:
        said[task.id] = str(text)
        return QUEUED

    def on_commit(self: FollowUps, change: Any, committed: Any) -> None:
        if change.ends and change.task.id in said:
            task = replace(change.task, follow_up=said.pop(change.task.id))
            self._beside.start(self._go_on(task))

    FollowUps.say = say  # type: ignore[method-assign]
    FollowUps.on_commit = on_commit  # type: ignore[method-assign]


def prompt_before_mark() -> None:
    """An agent is told what to do before it is on disk that it was told."""
    agent_run._keep = lambda folder, journal, mark: None  # type: ignore[assignment]


def mark_is_not_read() -> None:
    """The next owner does not look how far a run has come."""
    checkpoint.load = lambda folder, task: None  # type: ignore[assignment]
