"""The common part of the checks: a bench that makes changes, and how a difference is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from meantime.kernel.change import Change, Facts, amend, decide, ending, submit
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Completed, Event, Outcome, Run, Task, Work
from meantime.kernel.notices import Message, Notice, NoticeState, Part
from meantime.ports.store import CommitResult, Committed, Entry, Settled, Store

Check: TypeAlias = Callable[[Store], Awaitable[None]]
MANY = 1_000
PARKS = 5  # failures that park, in checks that are not about parking
OPEN_STATES = (NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED)


class StoreFixture:
    """Makes the changes that a runtime would make, one second after another."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 1_000.0

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    def task(self, id: str, thread: str = "a", **fields: Any) -> Task:
        at = self.tick()
        run = Run(queued_at=at, started_at=at)
        fields = {"work": Work("call", "tests:work"), **fields}
        return Task(
            id=id, thread=thread, status=Status.RUNNING, created_at=at, updated_at=at, run=run, **fields,
        )  # fmt: skip

    def ending(self, task: Task, outcome: Outcome | None = None) -> Change:
        outcome = outcome or Completed(f"result of {task.id}")
        return decide(task, ending(outcome), Facts(outcome=outcome), self.tick())

    def resuming(self, task: Task, batch: str | None = None) -> Change:
        run = Run(number=task.run.number + 1, queued_at=self.tick(), prompt="go on")
        return decide(task, Move.RESUME, Facts(next_run=run, batch=batch), self.now)

    async def write(self, change: Change) -> Committed:
        """Commits what must succeed."""
        committed = await self.store.commit(change)
        assert committed.result is CommitResult.DONE, f"a change in order was refused: {committed}"
        return committed

    async def start(self, id: str, thread: str = "a", **fields: Any) -> Task:
        task = self.task(id, thread, **fields)
        await self.write(submit(task))
        return task

    async def end(self, task: Task, outcome: Outcome | None = None) -> Task:
        change = self.ending(task, outcome)
        await self.write(change)
        return change.task

    async def ended(self, *ids: str, thread: str = "a", **fields: Any) -> list[Task]:
        return [await self.end(await self.start(id, thread, **fields)) for id in ids]

    async def resume(self, task: Task) -> Task:
        """Into its next run, and started."""
        change = self.resuming(task)
        await self.write(change)
        started = decide(change.task, Move.START, Facts(), self.tick())
        await self.write(started)
        return started.task

    async def hide(self, task: Task) -> Task:
        change = amend(task, self.tick(), hidden=True)
        await self.write(change)
        return change.task

    async def lease(self, turn: str, thread: str = "a", limit: int = MANY) -> Sequence[Notice]:
        return await self.store.lease(thread, turn, limit, self.tick())

    async def settle(self, turn: str, *ids: str, thread: str = "a", entries: Sequence[Entry] = ()) -> Settled:
        return await self.store.settle(thread, turn, ids, entries, self.tick())

    async def fail(self, turn: str, thread: str = "a", parks_after: int = PARKS) -> Sequence[str]:
        return await self.store.release(thread, turn, failed=True, parks_after=parks_after)

    async def give_back(self, turn: str, thread: str = "a") -> Sequence[str]:
        return await self.store.release(thread, turn, failed=False, parks_after=PARKS)

    async def tell(self, thread: str = "a") -> None:
        """Everything unread of a thread is told, whatever it takes."""
        while await self.lease("teller", thread):
            await self.settle("teller", thread=thread)

    async def load(self, id: str) -> Task:
        """Loads what must be there."""
        task = await self.store.load(id)
        assert task is not None, f"{id} is not there"
        return task

    async def journal(self) -> Sequence[Event]:
        return await self.store.events(0, MANY)

    async def states(self, thread: str | None = "a") -> dict[str, str]:
        found = await self.store.notices(thread, NoticeState, MANY)
        return {notice.id: notice.state.value for notice in found}


def ids(found: Iterable[Task | Notice]) -> list[str]:
    return [one.id for one in found]


def same(got: object, wanted: object, what: str) -> None:
    assert got == wanted, f"{what}: {got!r} instead of {wanted!r}"


def said(text: str, notice: str | None = None) -> Entry:
    return Entry(Message("user", (Part(text),)), notice)
