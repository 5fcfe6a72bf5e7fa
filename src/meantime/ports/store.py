"""Durable memory. One owner writes; every method is atomic; a method that returned is durable.

The contract is written for any database with transactions: a row per task with its version, a
unique key on (thread, tool call), on (task, run) and on (thread, completion number), and an event
log with a sequence. `meantime.testing.exercise_store` proves an implementation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from meantime.kernel.argument_checks import check_all, check_kind, check_text
from meantime.kernel.change import Change
from meantime.kernel.due_times import Uptime
from meantime.kernel.ids import check_id
from meantime.kernel.inbox_page import InboxEntry
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Retention
from meantime.kernel.model import BatchCount, Event, Task
from meantime.kernel.notices import Message, Notice, NoticeState, Part
from meantime.kernel.row_facts import EndingDelivery
from meantime.kernel.schedules import Schedule, ScheduleChange
from meantime.kernel.search_query import Term
from meantime.kernel.stats import Statistics


class CommitResult(StrEnum):
    DONE = "done"
    CONFLICT = "conflict"  # the version moved on: load again and decide again
    SAME_ID = "same_id"  # a task with this id is there already
    LEASED = "leased"  # the notice that the change joins is somebody's by now: decide again, without it
    SAME_CALL = "same_call"  # this (thread, tool call) has a task already


class Committed(NamedTuple):
    result: CommitResult
    seq: int = 0  # of the event
    number: int = 0  # of the last notice that was written
    existing: str = ""  # the id of the task that stands in the way
    batch: BatchCount | None = None  # the task's batch after a start, an ending or a resume


class Sort(StrEnum):
    NEWEST = "newest"  # by birth
    OLDEST = "oldest"
    UPDATED = "updated"  # what changed last comes first
    LONGEST = "longest"  # by what the last run took; what still runs comes last


class Query(Struct, frozen=True):
    """Which tasks, and in which order."""

    thread: str | None = None
    statuses: frozenset[Status] | None = None
    batch: str | None = None
    hidden: bool = False  # include cleared ones
    limit: int = 50
    offset: int = 0
    resumed: bool | None = None  # of those that are active: only later runs, or only first ones
    agent: str | None = None  # who works: an agent by its name, else the kind of work
    search: str = ""  # in the title, whatever the case
    session: str | None = None  # where the work is done
    sort: Sort = Sort.NEWEST
    before: int | None = None  # only what is older than this place in the order of birth; NEWEST only
    since: float | None = None  # only what was born at this time or later,
    until: float | None = None  # and before this one
    terms: tuple[Term, ...] = ()  # of a search: agent, kind, thread, batch and words


class Owed(NamedTuple):
    """A thread, and what it is still owed."""

    thread: str
    unread: int = 0
    leased: int = 0
    parked: int = 0
    ended_at: float | None = None  # the newest ending of its tasks


class Settled(NamedTuple):
    told: tuple[str, ...]
    gone: tuple[str, ...]  # leased again by somebody else, or back in the inbox


class DueSchedules(NamedTuple):
    """Schedules that are due, the latest first."""

    schedules: Sequence[Schedule]
    set_aside: Sequence[str] = ()  # the threads of those that cannot be read, one of each: no longer pending


class Entry(Struct, frozen=True):
    """One message of a transcript that we keep ourselves."""

    message: Message
    notice: str | None = None  # at most one entry per thread and notice
    position: int = 0


MOST_ROLE = 100  # characters
MOST_MESSAGE = 10_000_000  # characters of one part


def check_entry(entry: Entry) -> Entry:
    """The same as plain data that can be kept, or InvalidInput: one bad entry would hold up all others."""
    message = check_kind(entry.message, Message, "message")
    parts = tuple(
        replace(part, text=check_text(part.text, "message", MOST_MESSAGE))
        for part in check_all(message.parts, Part, "message.parts")
    )
    role = check_text(message.role, "role", MOST_ROLE)
    notice = None if entry.notice is None else check_id(entry.notice, "notice")
    return Entry(Message(role, parts), notice, entry.position)


class Store(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    @property
    def is_copy(self) -> bool:
        """Whether the store was copied from elsewhere, as by `cp` or a restored backup, and `own` was not
        called since: the work that it records as active belongs to the original."""
        ...

    async def own(self) -> None:
        """Ends that: whatever is recorded from now on is this store's. Survives a crash."""
        ...

    def commit(self, change: Change) -> asyncio.Future[Committed]:
        """Writes the task if its version still holds; with it, in the same transaction, the
        notices, each with the next number of its thread, the archived run and the event. The notice of an
        ending keeps how its batch stands with it, and how many tasks of its thread are active, without
        watches. A notice that joins another takes its place and its number, if nobody has leased that one
        yet. Changes handed in together may share one commit; a failing one does not sink its neighbours, and
        does not count. Cancelling the future does not take the change back."""
        ...

    # -- reading tasks
    async def load(self, id: str) -> Task | None: ...

    async def find(self, prefix: str, thread: str | None, limit: int) -> Sequence[Task]:
        """Tasks whose id starts with `prefix`, with or without our own `t_`; at most `limit`."""
        ...

    async def called(self, thread: str, tool_call: str) -> str | None:
        """The id of the task that this tool call of the thread has, if it has one."""
        ...

    async def list(self, query: Query) -> Sequence[Task]: ...

    async def place(self, id: str) -> int | None:
        """The place of a task in the order of birth: pages go on `before` it, even when it is gone."""
        ...

    async def count(self, query: Query, most: int | None = None) -> int:
        """How many tasks the query fits, before paging; or `most`, once there are as many."""
        ...

    async def statistics(self, thread: str | None) -> Statistics:
        """Over everything that is not cleared, of one thread or of all."""
        ...

    async def hot(self, thread: str, keep: int) -> Sequence[Task]:
        """The thread's newest `keep` endings by completion number and every untold one, newest
        first; one entry a task. Cleared ones are left out, but keep their place among the newest,
        so that clearing never brings older ones back."""
        ...

    async def runs(self, task_id: str) -> Sequence[Task]:
        """The task as each of its earlier runs left it, oldest first."""
        ...

    async def children(self, parent: str, limit: int) -> Sequence[Task]:
        """The tasks that the work of this one started, newest first."""
        ...

    async def active(self) -> Sequence[Task]:
        """Every task that has not ended, oldest first: what a restart must look after."""
        ...

    async def batch(self, id: str, thread: str | None = None) -> BatchCount | None:
        """The count of one thread's tasks, or of all; None where there are none."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Tasks by status and notices by state (as `notices.<state>`)."""
        ...

    async def following(self) -> Sequence[Task]:
        """Ended tasks that have a follow-up: their next run is still to be recorded."""
        ...

    # -- rows and numbers for people: each costs what it answers, and not the history
    async def ended_counts(self) -> Mapping[str, int]:
        """Ended tasks that are not cleared, by status."""
        ...

    async def deliveries_of(self, ids: Sequence[str]) -> Mapping[str, EndingDelivery]:
        """The notice of each task's current run, where that has ended, and what became of it."""
        ...

    async def children_of(self, ids: Sequence[str], most: int) -> Mapping[str, int]:
        """How many tasks each of these has started itself, counted up to `most`; 0 is left out."""
        ...

    async def held_of(self, threads: Sequence[str], most: int) -> Mapping[str, tuple[int, int]]:
        """The leased and the parked notices of each thread, both counted up to `most`."""
        ...

    async def late(self, before: float, most: int) -> tuple[int, int, int]:
        """Two counts of the notices that are not told, up to `most`: those that are parked or whose run
        ended before then, and all. The third number is how many were told."""
        ...

    # -- telling
    async def lease(self, thread: str, turn: str, limit: int, now: float) -> Sequence[Notice]:
        """Leases unread notices to a turn, by completion number. Nothing is leased while another
        turn holds some of the thread's, so two turns can never tell out of order. A notice whose
        delivery failed twice is leased alone, so that it cannot take its neighbours with it."""
        ...

    async def read(self, turn: str, task_id: str, run: int, now: float) -> bool:
        """The turn's agent has read this ending: lease its unread notice to the turn, to be settled
        with its ack. False if it was not unread."""
        ...

    async def settle(
        self, thread: str, turn: str, notices: Sequence[str], entries: Sequence[Entry], now: float
    ) -> Settled:
        """Marks the turn's notices told and, in the same transaction, appends the entries to the
        thread's transcript (entries whose notice is there already are left out)."""
        ...

    async def told_by(self, turn: str, notices: Sequence[str], thread: str | None) -> Sequence[str]:
        """The notices that this very turn has told, of one thread or of any: the answer to an ack that is
        sent again, even by a later owner. Sees every settle handed in before it.
        """
        ...

    async def release(self, thread: str, turn: str, *, failed: bool, parks_after: int) -> Sequence[str]:
        """Gives a turn's notices back and returns the ids that are unread again. A failed delivery is
        counted; too many park the notice."""
        ...

    async def notices(
        self, thread: str | None, states: Iterable[NoticeState], limit: int, offset: int = 0
    ) -> Sequence[Notice]: ...

    async def count_notices(self, thread: str | None, states: Iterable[NoticeState]) -> int:
        """How many there are in these states, before paging."""
        ...

    async def inbox(self, thread: str, before: int, limit: int) -> Sequence[InboxEntry]:
        """The thread's notices of any state whose number is below `before`, newest first: for people."""
        ...

    async def deliveries(self, task_id: str, limit: int) -> Sequence[InboxEntry]:
        """The notices of a task's newest runs, oldest first."""
        ...

    async def count_inbox(self, thread: str, most: int) -> Mapping[str, int]:
        """The thread's notices by state; at most the newest `most` of the settled ones are counted."""
        ...

    async def unread(self) -> Mapping[str, int]:
        """Unread notices by thread."""
        ...

    async def owed(self, thread: str | None, limit: int) -> Sequence[Owed]:
        """Every thread that has tasks, notices or pending schedules, or this one, by name; costs what is
        open, not the history."""
        ...

    async def unpark(self, thread: str, notices: Sequence[str] | None = None) -> int:
        """Makes parked notices unread again, all of the thread's or these; their failures are forgiven."""
        ...

    async def park_unclaimed(self, before: float, spare: Sequence[str]) -> int:
        """Parks the unread notices of threads that nobody leased from since `before`, except those
        of `spare`."""
        ...

    async def recover(self, parks_after: int) -> int:
        """After a restart: every lease of the former owner counts as a failed delivery."""
        ...

    # -- schedules
    def commit_schedule(self, change: ScheduleChange) -> asyncio.Future[Committed]:
        """Writes the schedule if its version still holds and, in the same transaction, its alarm, with the
        next number of its thread. As of `commit`, changes may share one commit, and cancelling the future
        takes nothing back."""
        ...

    async def schedule(self, id: str) -> Schedule | None: ...

    async def schedules(self, thread: str | None, limit: int, offset: int = 0) -> Sequence[Schedule]:
        """Pending schedules of one thread or of all, soonest first by the wall clock."""
        ...

    async def pending_schedules(self) -> Mapping[str, int]:
        """How many are pending, by thread."""
        ...

    async def next_due(self, boot: str) -> tuple[float | None, float | None]:
        """When the next pending one is due: by the wall clock, and in seconds since this boot. However many
        are pending, it costs the same."""
        ...

    async def due_schedules(self, now: float, uptime: Uptime, limit: int) -> DueSchedules:
        """Pending ones that are due by now, at most so many."""
        ...

    async def leave_boot(self, boot: str) -> int:
        """Pending delays of any other boot are counted by the wall clock from now on. How many."""
        ...

    # -- a transcript of our own
    async def append(self, thread: str, entries: Sequence[Entry]) -> None: ...

    async def transcript(self, thread: str) -> Sequence[Entry]: ...

    async def has_entry(self, thread: str, notice: str) -> bool: ...

    # -- observing, upkeep, files
    async def events(self, after: int, limit: int) -> Sequence[Event]: ...

    async def last_event(self) -> int:
        """The newest event's sequence number; 0 where there never was one."""
        ...

    async def forget(self, retention: Retention, now: float) -> int:
        """Deletes told endings, and schedules that are over, that are too old or too many; never one with an
        untold notice."""
        ...

    async def purge(self, ids: Sequence[str], now: float | None = None) -> int:
        """Deletes ended tasks for good, with their notices and files. With a time, each leaves an event
        `purged` in the journal, so that whoever shows it knows that it is gone."""
        ...

    async def spill(self, payload: bytes) -> str:
        """Writes a payload to a private file and returns its path."""
        ...

    async def unspill(self, path: str) -> bytes: ...
