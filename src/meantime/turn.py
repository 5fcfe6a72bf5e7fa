"""Being told: a turn holds a thread's notices, and a transcript of ours can hold the conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from meantime.handle import Ref, Until, ref_of
from meantime.kernel.errors import InvalidInput, LeaseLost
from meantime.kernel.model import Output, Task
from meantime.kernel.notices import Message, Notice, Part, Renderer, notice_id
from meantime.ports.store import Entry, Settled
from meantime.ports.tasks import CancelAnswer, Tasks
from meantime.wording import Wording, reminder

T = TypeVar("T")


class Turn:
    """Busy while its block is open. Leaving without `ack()` gives the notices back."""

    def __init__(
        self, tasks: Tasks, thread: str, lease: float | None, limit: int, reads_settle: bool
    ) -> None:
        self._tasks = tasks
        self._thread = thread
        self._lease = lease
        self._limit = limit
        self._reads_settle = reads_settle
        self.id = ""
        self._notices: list[Notice] = []
        self._reads: list[str] = []  # notices of endings that the agent read itself

    @property
    def notices(self) -> list[Notice]:
        """What this turn tells, in the order of completion."""
        if not self.id:
            raise InvalidInput("This turn is not open.", hint="Enter it: async with thread.turn() as turn.")
        return self._notices

    async def __aenter__(self) -> Turn:
        opened = await self._tasks.open_turn(self._thread, lease=self._lease, limit=self._limit)
        self.id = opened.id
        self._notices = list(opened.notices)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.close_turn(self.id, failed=problem is not None)

    async def boundary(self) -> Sequence[Notice]:
        """Leases what came in since, for a turn of many steps; the new ones join `notices`."""
        fresh = await self._tasks.boundary(self.id, limit=self._limit)
        self._notices += fresh
        return fresh

    async def ack(self, *notices: Notice | str, transcript: Transcript | None = None) -> Settled:
        """The conversation holds them now: all of this turn's notices, or those you name.

        With a transcript of ours, what was added to it is saved in the same transaction."""
        ids = [ref_of(notice) for notice in notices or self.notices]
        reads = () if notices else tuple(self._reads)
        if transcript is None:
            return await self._tasks.ack(self.id, ids, (), reads)
        return await transcript.saving(lambda entries: self._tasks.ack(self.id, ids, entries, reads))

    async def renew(self) -> None:
        await self._tasks.renew(self.id)

    def render(self, dialect: Renderer | str | None = None) -> list[Message]:
        return [notice.message(dialect) for notice in self.notices]

    async def reminder(self, dialect: Wording | None = None) -> str:
        return await reminder(self._tasks, self._thread, dialect)

    # -- an agent's reads in this turn: they count as told with its ack, if the turn says so

    async def output(self, ref: Ref, *, wait: float = 0) -> Output:
        output = await self._tasks.output(ref_of(ref), self._thread, wait=wait, turn=self._settling)
        self._saw(output.task)
        return output

    async def wait(self, *refs: Ref, until: Until = "all", timeout: float | None = None) -> Sequence[Task]:
        ids = [ref_of(ref) for ref in refs]
        turn = self._settling
        tasks = await self._tasks.wait(ids, self._thread, until=until, timeout=timeout, turn=turn)
        self._saw(*tasks)
        return tasks

    async def cancel(self, ref: Ref, *, reason: str = "", wait: bool = True) -> CancelAnswer:
        answer = await self._tasks.cancel(
            ref_of(ref), self._thread, by="agent", reason=reason, wait=wait, turn=self._settling
        )
        self._saw(answer.task)
        return answer

    async def read(self, *notices: Notice | str) -> None:
        """The agent has these endings before its eyes, by whatever way it came to them."""
        for id in map(ref_of, notices):
            if self._reads_settle:
                await self._tasks.output(id.rpartition(".")[0], self._thread, turn=self.id)
            self._reads.append(id)

    def _saw(self, *tasks: Task) -> None:
        self._reads += [notice_id(task.id, task.run.number) for task in tasks if task.ended]

    @property
    def _settling(self) -> str | None:
        return self.id if self._reads_settle else None


class Transcript:
    """A small conversation in our own store: the class A host. Add, then save or ack."""

    def __init__(self, tasks: Tasks, thread: str) -> None:
        self._tasks = tasks
        self._thread = thread
        self._added: list[Entry] = []

    def add(self, notice: str | None, message: Message | str, *, role: str = "user") -> None:
        """Adds a message; one that carries a notice id is kept once, however often it is added."""
        if isinstance(message, str):
            message = Message(role, (Part(message),))
        self._added.append(Entry(message, notice))

    async def save(self) -> None:
        await self.saving(lambda entries: self._tasks.append(self._thread, entries))

    async def has(self, notice: Notice | str) -> bool:
        return await self._tasks.has_entry(self._thread, ref_of(notice))

    async def messages(self) -> list[Message]:
        return [entry.message for entry in await self._tasks.transcript(self._thread)]

    async def entries(self) -> Sequence[Entry]:
        return await self._tasks.transcript(self._thread)

    async def saving(self, write: Callable[[list[Entry]], Coroutine[Any, Any, T]]) -> T:
        """What was added is dropped here once it is written, whether or not our caller still waits."""
        entries = list(self._added)
        writing = asyncio.ensure_future(write(entries))

        def written(done: asyncio.Future[T]) -> None:
            problem = None if done.cancelled() else done.exception()
            if not done.cancelled() and (problem is None or isinstance(problem, LeaseLost)):
                self._added = [entry for entry in self._added if not any(entry is one for one in entries)]

        writing.add_done_callback(written)
        return await asyncio.shield(writing)
