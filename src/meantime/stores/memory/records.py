"""The stored data of one task, and of each of its notices."""

from __future__ import annotations

import secrets

from meantime.kernel.model import BatchCount, Task
from meantime.kernel.notice_sources import Draft, NoticeBody, notice_id
from meantime.kernel.notices import NoticeState
from meantime.kernel.row_facts import EndingDelivery


class TaskRecord:
    """A task, what its earlier runs left, and its notices."""

    __slots__ = ("born", "events", "notices", "runs", "task")

    def __init__(self, task: Task, born: int) -> None:
        self.task = task
        self.born = born
        self.runs: list[Task] = []
        self.notices: list[NoticeRecord] = []  # of its endings
        self.events: list[NoticeRecord] = []  # of what it told before them

    @property
    def number(self) -> int:
        """The completion number of its last ending."""
        return self.notices[-1].number if self.notices else 0

    def left_by(self, run: int) -> Task:
        return self.task if self.task.run.number == run else next(t for t in self.runs if t.run.number == run)


class NoticeRecord:
    """A notice as the store keeps it: what happened to it, beside what it says."""

    __slots__ = (
        "at", "batch", "body", "deliveries", "failures", "id", "nonce", "number", "of", "run", "running",
        "state", "thread", "told_at", "turn", "turn_number", "waits",
    )  # fmt: skip

    def __init__(self, of: TaskRecord | None, draft: Draft, number: int) -> None:
        """`of` is None for a notice that is about no task, as an alarm is."""
        self.of = of
        self.thread = draft.thread
        self.at = draft.at
        self.body: NoticeBody | None = draft.body
        self.batch: BatchCount | None = None  # of an ending: how things stood then
        self.running = 0
        self.run = 0 if of is None else of.task.run.number
        self.id = _id(of, draft)
        self.number = number
        self.nonce = secrets.token_hex(6)
        self.state = NoticeState.MUTED if draft.muted else NoticeState.UNREAD
        self.turn = ""  # who holds it, or who told it
        self.turn_number: int | None = None
        self.told_at: float | None = None
        self.deliveries = 0
        self.failures = 0
        self.waits = False  # parked because nobody came, not because its delivery failed

    @property
    def task(self) -> Task | None:
        if self.of is None:
            return None
        return self.of.left_by(self.run) if self.body is None else self.of.task

    @property
    def delivery(self) -> EndingDelivery:
        """Its state, for people."""
        at = self.at if self.told_at is None else self.told_at
        why = "unclaimed" if self.waits else "failures"
        reason = why if self.state is NoticeState.PARKED else None
        return EndingDelivery(self.state, self.number, self.turn or None, at, reason, self.turn_number)


def _id(of: TaskRecord | None, draft: Draft) -> str:
    if draft.body is not None:
        return draft.body.ref.id
    assert of is not None, "an ending is of a task"
    return notice_id(of.task.id, of.task.run.number)


def by_number(record: TaskRecord | NoticeRecord) -> int:
    return record.number


def by_birth(record: TaskRecord) -> int:
    return record.born
