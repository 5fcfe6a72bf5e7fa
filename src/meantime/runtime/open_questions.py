"""open questions: work that needs an answer waits for it, and any surface can give it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec.structs import replace

from meantime.kernel.argument_checks import check_text, shown
from meantime.kernel.bounds import bounded_question
from meantime.kernel.change import Change, Disposition, Facts
from meantime.kernel.errors import AlreadyAnswered, Closed, InvalidInput, NotFound, Refused
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Task
from meantime.kernel.plain_text import cut, plain
from meantime.kernel.questions import Question, Reply, check_answer, posed, reply_to
from meantime.ports.runner import Stopped
from meantime.ports.store import Committed

from .record import Record

ELSEWHERE = "elsewhere"  # `by` of a question that was answered where it was asked
STOPPED = "This run was asked to stop while it waited for an answer."
MOST_ID = 200  # characters of a question's id
SHOWN_ANSWER = 2_000  # characters of the answer that was first
PERSON, AGENT = "user", "agent"  # who may answer


class OpenQuestions:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._turns: dict[str, asyncio.Lock] = {}  # one question at a time per task
        self._waiting: dict[str, _Asked] = {}
        self._unheard: dict[str, Reply] = {}  # answered before the work has asked again

    async def ask(self, id: str, fence: tuple[int, int], question: Question) -> Reply:
        """The answer, once there is one. A question that was answered, but whose answer was never received,
        is not asked again.
        """
        async with self._turns.setdefault(id, asyncio.Lock()):
            task = self._record.live.get(id)
            if task is None:
                raise Refused(
                    "A call that somebody waits for cannot ask.",
                    code="in_foreground",
                    hint="Start it as a task.",
                )
            known = self._known(task, fence, question)
            if known is not None:
                return known
            asked = self._waiting[id] = _Asked(question.id)
            try:
                await self._wait_for(task, fence, posed(question))
                asked.is_written.set()
                return await asked.answer
            finally:
                asked.is_written.set()
                self._waiting.pop(id, None)

    def _known(self, task: Task, fence: tuple[int, int], question: Question) -> Reply | None:
        """Only what this run was told: a host may number its questions anew in every run."""
        unheard = self._unheard.pop(task.id, None)
        if unheard is not None and unheard.question == question.id:
            return unheard
        number, attempt = fence
        if attempt == 1:
            return None
        # A retry begins again and asks again: it gets the answers that its former attempt got.
        own = [said for said in task.answers if said.run == number and said.question == question.id]
        return own[-1] if own else None

    async def _wait_for(self, task: Task, fence: tuple[int, int], question: Question) -> None:
        known = task.question
        if task.status is Status.WAITING and known is not None and known.id == question.id:
            return  # asked by a former owner, and still open
        question = replace(bounded_question(question), asked_at=self._record.clock.now())
        if task.status is Status.WAITING:  # it asked something else before the restart: that is void

            def instead(now: Task) -> dict[str, object] | None:
                return {"question": question} if now.status is Status.WAITING else None

            now = await self._record.amend(task.id, instead, event="asked", durable=True)
            if now.question is not None and now.question.id == question.id:
                return
        moved = await self._record.insist(task.id, Move.ASK, Facts(question=question, run=fence))
        if moved.disposition is not Disposition.APPLIED:
            raise Stopped(STOPPED)

    async def withdraw(self, id: str, question: str, reply: Reply | None) -> None:
        """It was answered where it was asked, or is not of interest any more. The question may still be on
        its way to the ledger, where it would stay open."""
        reply = reply or Reply(question=question, by=ELSEWHERE, at=self._record.clock.now())
        asked = self._waiting.get(id)
        if asked is not None and asked.question == question:
            await asked.is_written.wait()
        with suppress(Closed, NotFound):
            await self._record.drain()  # the commit of one that is not waited for any more goes on
            await self._record.insist(id, Move.ANSWER, Facts(reply=reply))

    async def answer(
        self, task: Task, text: str, scope: str | None, by: str, named: str | None = None
    ) -> Task:
        """`named`: the question that is meant, where the caller says which one it saw."""
        text, scope = check_answer(text, scope)
        named = None if named is None else check_text(named, "question", MOST_ID)
        if not isinstance(by, str) or plain(by) not in (PERSON, AGENT):  # pyright: ignore[reportUnnecessaryIsInstance]  it comes from outside
            known = f"Use {PERSON!r} for a person, {AGENT!r} for an agent."
            raise InvalidInput(f"by={shown(by)} is unknown.", hint=known)
        if task.status is not Status.WAITING or _is_another(task, named):
            # Whoever looked into the store may have seen the question before its commit took effect here.
            await self._record.drain()
            task = await self._record.current(task.id)
        question = task.question
        if task.status is not Status.WAITING or question is None or _is_another(task, named):
            raise _not_waiting(task, named)
        reply = reply_to(question, text, scope=scope, by=by, now=self._record.clock.now())
        if by != PERSON and question.kind == "permission" and reply.allows is not False:
            raise Refused(
                "A permission is given by a person, or by a rule of the agent that asks.",
                code="needs_a_person",
                hint=f"A person can say: meantime answer {task.id} allow; "
                f'a program on their behalf: mt.answer("{task.id}", "allow").',
            )
        moved = await self._record.move(task.id, Move.ANSWER, Facts(reply=reply))
        if moved.disposition is not Disposition.APPLIED:
            raise _not_waiting(moved.task, named or question.id)
        return moved.task

    def on_commit(self, change: Change, committed: Committed) -> None:
        """The commit of an answer resumes the work, whoever gave it."""
        task = change.task
        if change.ends:
            self._turns.pop(task.id, None)
            self._unheard.pop(task.id, None)
        asked = self._waiting.get(task.id)
        answered = change.event is not None and change.event.kind == "answered"
        if answered and (asked is None or asked.question != task.answers[-1].question):
            if task.answers[-1].by != ELSEWHERE:
                self._unheard[task.id] = task.answers[-1]
        elif asked is None or asked.answer.done():
            return
        elif answered:
            asked.answer.set_result(task.answers[-1])
        elif task.status is Status.CANCELLING or task.ended:
            asked.answer.set_exception(Stopped(STOPPED))


class _Asked:
    """A question that its work waits for, in the event loop."""

    def __init__(self, question: str) -> None:
        self.question = question
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.is_written = asyncio.Event()  # or its work has gone away before


def _is_another(task: Task, named: str | None) -> bool:
    return named is not None and (task.question is None or task.question.id != named)


def _not_waiting(task: Task, named: str | None) -> Refused:
    """The question was answered by somebody else, in this run; or there was none."""
    replies = [reply for reply in task.answers if reply.run == task.run.number and reply.by != ELSEWHERE]
    first = [reply for reply in replies if named in (None, reply.question)]
    if first and (named is not None or not task.ended):
        reply = first[-1]
        text = f"The question of task {task.id} was answered already, by {reply.by}: {cut(str(reply), 200)}"
        return AlreadyAnswered(text, by=reply.by, at=reply.at, answer=cut(str(reply), SHOWN_ANSWER))
    hint = "Say more with send."
    if task.ended:  # only agents hold a conversation
        hint = "Go on with resume." if task.work.kind == "agent" else "Start a new one."
    return Refused(f"Task {task.id} waits for no answer; it is {task.status}.", code="not_waiting", hint=hint)
