"""The details of one task: what can be done with it, who was told, its spending and its family."""

from __future__ import annotations

from msgspec import Struct

from meantime.kernel.actions import Action
from meantime.kernel.estimates import Usual
from meantime.kernel.inbox_page import InboxEntry
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.questions import PermissionRules

MOST_CHILDREN = 50
MOST_RUNS = 50  # runs whose deliveries are listed: the newest


class Relative(Struct, frozen=True):
    """A task beside another one: its parent, or a child."""

    id: str
    thread: str
    title: str
    status: Status


class Spent(Struct, frozen=True):
    """How much of one thing the current run has used, and its limit."""

    name: str  # tokens, cost, turns, tool_calls or seconds
    used: float
    limit: float | None  # None is no limit


class Attendance(Struct, frozen=True):
    """The attention that a thread has now: the open turn, and how many wait to be woken."""

    turn: str | None = None
    opened_at: float | None = None
    held: int = 0  # notices that the turn holds
    waiting: int = 0


class TaskDetails(Struct, frozen=True, kw_only=True):
    """Everything about one task that is not in the task itself."""

    task: Task
    actions: tuple[Action, ...]
    deliveries: tuple[InboxEntry, ...]  # of its newest runs, oldest first
    usual: Usual | None
    budget: tuple[Spent, ...]
    parent: Relative | None
    children: tuple[Relative, ...]  # the newest, oldest first
    more_children: bool  # there are more than are listed
    batch: BatchCount | None
    position: int | None  # of a queued task: its place in the queue
    rules: PermissionRules | None = None  # of an agent that is still configured
