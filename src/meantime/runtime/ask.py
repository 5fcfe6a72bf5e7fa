"""ask: work that needs an answer waits for it, and any door can give it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from meantime.kernel.change import Change, Disposition, Facts
from meantime.kernel.errors import Refused
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import Task
from meantime.kernel.questions import Question, Reply, reply_to
from meantime.ports.runner import Stopped
from meantime.ports.store import Committed

from .record import Record

ELSEWHERE = "elsewhere"  # `by` of a question that was answered where it was asked
STOPPED = "This run was asked to stop while it waited for an answer."


class Asking:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._turns: dict[str, asyncio.Lock] = {}  # one question at a time per task
        self._waiting: dict[str, tuple[str, asyncio.Future[Reply]]] = {}

    async def ask(self, id: str, fence: tuple[int, int], question: Question) -> Reply:
        """The answer, once there is one. What was answered before a restart is not asked again."""
        async with self._turns.setdefault(id, asyncio.Lock()):
            task = self._record.live.get(id)
            if task is None:
                raise Refused(
                    "A call that somebody waits for cannot ask.",
                    code="in_foreground",
                    hint="Start it as a task.",
                )
            answered = [reply for reply in task.answers if reply.question == question.id]
            if answered:
                return answered[-1]
            answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            self._waiting[id] = (question.id, answer)
            try:
                await self._wait_for(task, fence, question)
                return await answer
            finally:
                self._waiting.pop(id, None)

    async def _wait_for(self, task: Task, fence: tuple[int, int], question: Question) -> None:
        known = task.question
        if task.status is Status.WAITING and known is not None and known.id == question.id:
            return  # asked by a former owner, and still open
        question = replace(question, asked_at=self._record.clock.now())
        if task.status is Status.WAITING:  # it asked something else before the restart: that is void

            def instead(now: Task) -> dict[str, object] | None:
                return {"question": question} if now.status is Status.WAITING else None

            await self._record.amend(task.id, instead, event="asked", durable=True)
            return
        moved = await self._record.insist(task.id, Move.ASK, Facts(question=question, run=fence))
        if moved.disposition is not Disposition.APPLIED:
            raise Stopped(STOPPED)

    def withdraw(self, id: str, question: str, beside: Callable[[object], None]) -> None:
        """It was answered where it was asked, or is not of interest any more."""
        reply = Reply(question=question, by=ELSEWHERE, at=self._record.clock.now())
        beside(self._record.move(id, Move.ANSWER, Facts(reply=reply)))

    async def answer(self, task: Task, text: str, scope: str | None, by: str) -> Task:
        question = task.question
        if task.status is not Status.WAITING or question is None:
            raise _not_waiting(task)
        reply = reply_to(question, text, scope=scope, by=by, now=self._record.clock.now())
        if by == "agent" and question.kind == "permission" and reply.allows is not False:
            raise Refused(
                "A permission is given by a person, or by a rule of the agent that asks.",
                code="needs_a_person",
                hint=f"A person can say: meantime answer {task.id} allow.",
            )
        moved = await self._record.move(task.id, Move.ANSWER, Facts(reply=reply))
        if moved.disposition is not Disposition.APPLIED:
            raise _not_waiting(moved.task)
        return moved.task

    def heard(self, change: Change, committed: Committed) -> None:
        """The commit of an answer is what the work hears, whoever gave it."""
        id = change.task.id
        if change.ends:
            self._turns.pop(id, None)
        waiting = self._waiting.get(id)
        if waiting is None or waiting[1].done():
            return
        question, answer = waiting
        replies = change.task.answers
        if change.task.status is Status.RUNNING and replies and replies[-1].question == question:
            answer.set_result(replies[-1])
        elif change.task.status is Status.CANCELLING:
            answer.set_exception(Stopped(STOPPED))


def _not_waiting(task: Task) -> Refused:
    hint = "Say more with send." if not task.ended else "Go on with resume."
    return Refused(f"Task {task.id} waits for no answer; it is {task.status}.", code="not_waiting", hint=hint)
