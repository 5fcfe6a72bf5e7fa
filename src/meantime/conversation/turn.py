"""Being told: a turn holds a thread's notices until they are acknowledged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from types import TracebackType

from meantime.conversation.dialect_lookup import Wording, reminder
from meantime.conversation.handle import Ref, Until, ref_of
from meantime.conversation.transcript import Transcript
from meantime.kernel.argument_checks import check_all, check_kind
from meantime.kernel.constraints import check_flag
from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import check_id
from meantime.kernel.model import Output, Task
from meantime.kernel.notice_sources import notice_id, parse_notice_id
from meantime.kernel.notices import Message, Notice, Part, Renderer
from meantime.ports.store import Settled
from meantime.ports.tasks import CancelAnswer, Tasks


class Turn:
    """Busy while it is open. Leaving its block without `ack()` gives the notices back.

    A host whose turn does not fit into one block, or into one process, calls `open()` and `close()` itself:
    whoever knows the id goes on with `thread.turn(id)`."""

    def __init__(
        self,
        tasks: Tasks,
        thread: str,
        id: str = "",
        *,
        lease: float | None = None,
        limit: int = 100,
        reads_settle: bool = True,
        said: tuple[str, ...] = (),
    ) -> None:
        self._tasks = tasks
        self._thread = thread
        self._lease = lease
        self._limit = limit
        self._reads_settle = reads_settle
        self.id = id
        self._is_open = bool(id)
        self.said = said  # what the person said, for a turn of a `Loop`
        self._is_elsewhere = bool(id)  # another object opened it, and knows what it tells
        self._notices: list[Notice] = []
        self._reads: list[str] = []  # notices of endings that the agent read itself

    @property
    def notices(self) -> list[Notice]:
        """The notices of this turn, in the order of completion."""
        if not self.id:
            raise InvalidInput("This turn is not open.", hint="Enter it: async with thread.turn() as turn.")
        return self._notices

    async def open(self) -> Turn:
        """Leases the unread notices; for a turn that is open already, it does nothing."""
        if not self._is_open:
            opened = await self._tasks.open_turn(self._thread, lease=self._lease, limit=self._limit)
            self.id, self._is_open, self._is_elsewhere = opened.id, True, False
            self._notices, self._reads = list(opened.notices), []
        return self

    async def close(self, *, failed: bool = False) -> None:
        """Gives back the notices that have no ack. failed: they did not reach the agent; a notice that failed
        twice comes alone from then on, so that one bad notice holds up no other."""
        check_flag(failed, "failed")
        self._is_open = False
        await self._tasks.close_turn(self.id, failed=failed, thread=self._thread)

    async def __aenter__(self) -> Turn:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(failed=problem is not None)

    async def boundary(self, *, read: Iterable[str] = ()) -> Sequence[Notice]:
        """Leases what came in since, for a turn of many steps; the new ones join `notices`.

        read: ids of notices whose endings a tool has shown the agent: they are told with the ack, and not
        returned."""
        seen = {*check_all(read, str, "read"), *self._reads}
        fresh = await self._tasks.boundary(self.id, limit=self._limit, thread=self._thread)
        self._notices += fresh
        return [notice for notice in fresh if notice.id not in seen]

    def fresh(self, known: Collection[str] = ()) -> list[Notice]:
        """The notices of this turn that the conversation does not hold yet.

        known: ids of notices that it holds. One that is there has been told, and only its ack was lost.
            Endings that the agent read itself in this turn are left out, too.
        """
        held = {*check_all(known, str, "known"), *self._reads}
        return [notice for notice in self.notices if notice.id not in held]

    async def ack(self, *notices: Notice | str, transcript: Transcript | None = None) -> Settled:
        """The conversation holds them now: all of this turn's notices, or those you name.

        With a transcript of ours, what was added to it is saved in the same transaction."""
        if self._is_elsewhere and not notices:
            raise InvalidInput(
                "Only the one who opened this turn knows its notices.", hint="Name the notices that you ack."
            )
        ids = [ref_of(notice) for notice in notices or self.notices]
        reads = () if notices else tuple(self._reads)
        if transcript is not None:
            check_kind(transcript, Transcript, "transcript")
        if transcript is None:
            return await self._tasks.ack(self.id, ids, (), reads, thread=self._thread)
        return await transcript.saving(
            lambda entries: self._tasks.ack(self.id, ids, entries, reads, thread=self._thread)
        )

    async def renew(self) -> None:
        """Starts the lease anew: for a turn that takes longer."""
        await self._tasks.renew(self.id, thread=self._thread)

    def render(self, dialect: Renderer | str | None = None) -> list[Message]:
        """The notices as messages for the conversation, in our words or a dialect's."""
        return [notice.message(dialect) for notice in self.notices]

    def messages(self, dialect: Wording | None = None) -> list[Message]:
        """The new messages for the conversation: the endings, in order, then the person's words."""
        return [*self.render(dialect), *(Message("user", (Part(text),)) for text in self.said)]

    async def reminder(self, dialect: Wording | None = None) -> str:
        """Running tasks, and ended ones that were not told; see `Thread.reminder`. It leaves out the
        notices of this turn, which the agent reads beside it."""
        told = {notice.id for notice in self._notices}
        return await reminder(self._tasks, self._thread, dialect, self.id or None, told)

    # -- an agent's reads in this turn: they count as told with its ack, if the turn says so

    async def output(self, ref: Ref, *, wait: float = 0) -> Output:
        """The readable output of a task now; an ending that is read here counts as told with the ack.

        ref: the task.
        wait: seconds that it is given to end first.
        """
        output = await self._tasks.output(ref_of(ref), self._thread, wait=wait, turn=self._settling)
        self._saw(output.task)
        return output

    async def wait(self, *refs: Ref, until: Until = "all", timeout: float | None = None) -> Sequence[Task]:
        """Waits for tasks, as `Thread.wait` does; endings that are seen here count as told with the ack.

        refs: the tasks.
        until: "all" or "any".
        timeout: the most seconds to wait; None waits for ever.
        """
        ids = [ref_of(ref) for ref in refs]
        turn = self._settling
        tasks = await self._tasks.wait(ids, self._thread, until=until, timeout=timeout, turn=turn)
        self._saw(*tasks)
        return tasks

    async def cancel(self, ref: Ref, *, reason: str = "", wait: bool = True) -> CancelAnswer:
        """Asks a task to stop; the ending counts as told with the ack.

        ref: the task.
        reason: kept with the outcome.
        wait: True answers with the ending.
        """
        answer = await self._tasks.cancel(
            ref_of(ref), self._thread, by="agent", reason=reason, wait=wait, turn=self._settling
        )
        self._saw(answer.task)
        return answer

    async def read(self, *notices: Notice | str) -> None:
        """The agent has these endings before its eyes, by whatever way it came to them."""
        for id in [check_id(ref_of(notice), "notice") for notice in notices]:
            if self._reads_settle:
                told = parse_notice_id(id)
                await self._tasks.output(told.of if told else id, self._thread, turn=self.id)
            self._reads.append(id)

    def _saw(self, *tasks: Task) -> None:
        self._reads += [notice_id(task.id, task.run.number) for task in tasks if task.ended]

    @property
    def _settling(self) -> str | None:
        return self.id if self._reads_settle else None
