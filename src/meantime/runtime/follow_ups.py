"""follow-ups: what was said to an agent while it ran, and could not be said in its turn, is its next run."""

from __future__ import annotations

import logging
from typing import cast

from meantime.kernel.argument_checks import check_text
from meantime.kernel.change import Change
from meantime.kernel.errors import Closed, InvalidInput, MeantimeError, Refused
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.ports.engine import Engine
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import TalkingRunner
from meantime.ports.store import Committed

from .record import Record
from .submit import Submission

logger = logging.getLogger("meantime")
MAX_FOLLOW_UP = 1_000_000
STEERED, QUEUED = "steered", "queued"


class FollowUps:
    def __init__(self, record: Record, submission: Submission, engine: Engine) -> None:
        self._record = record
        self._submission = submission
        self._engine = engine
        self._beside = BackgroundTasks()
        self.closed = False

    async def say(self, task: Task, text: object) -> str:
        """In the middle of its run if that is possible; otherwise one follow-up is kept for after it."""
        if isinstance(text, bytes):
            raise InvalidInput("An agent is told a text, not bytes.")
        said = check_text(text, "text", MAX_FOLLOW_UP).strip()
        if not said:
            raise InvalidInput("There is nothing to say in that.", hint="Give a text.")
        runner = cast("TalkingRunner", self._engine.runner(task.work.kind))
        if task.status is Status.RUNNING and await runner.steer(task, said):
            return STEERED
        await self._record.amend(task.id, lambda now: _queued(now, said), event="follow_up", durable=True)
        return QUEUED

    def on_commit(self, change: Change, committed: Committed) -> None:
        if change.ends and change.task.follow_up and not self.closed:
            self._beside.start(self._go_on(change.task))

    async def recover(self) -> None:
        """Starts the runs whose predecessor's ending was recorded, and that were not. It is repeated now and
        then: a disk may have been full for a while.
        """
        for task in await self._record.store.following():
            if not self.closed:
                await self._go_on(task)

    async def _go_on(self, task: Task) -> None:
        try:
            await self._submission.go_on(task)
        except Closed:
            pass  # the next owner goes on with it
        except MeantimeError as problem:
            logger.warning("The follow-up of %s is tried again: %s", task.id, problem)

    async def close(self) -> None:
        self.closed = True
        await self._beside.wait()


def _queued(task: Task, text: str) -> dict[str, object]:
    if task.ended:
        raise ended(task)
    if task.status is Status.CANCELLING:  # a cancelled task has no next run
        raise Refused(
            f"Task {task.id} is being cancelled.", code="cancelling", hint="Go on with it by resume, then."
        )
    if task.follow_up:
        raise Refused(
            f"Task {task.id} has a follow-up already, which comes next.",
            code="follow_up_queued",
            hint="Wait until this run has ended.",
        )
    return {"follow_up": text}


def ended(task: Task) -> Refused:
    return Refused(f"Task {task.id} has ended.", code="ended", hint="Go on with it by resume.")
