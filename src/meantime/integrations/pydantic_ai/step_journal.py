"""Steps of a run that may be killed, each a task in the ledger: recorded before it begins, and again when it
ends. A run that is repeated finds what is recorded, and executes only the rest.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import NamedTuple

from pydantic_core import from_json, to_json

from meantime.kernel.argument_checks import check_text
from meantime.kernel.errors import (
    Duplicate,
    InvalidInput,
    NotFound,
    Refused,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    TaskLost,
    TaskTimedOut,
)
from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.model import Json, Task
from meantime.thread import Thread

MOST_KEY = 500  # characters of a key
MOST_ATTEMPTS = 1_000  # of one step; each crash in the middle of it takes one
MOST_NAME = 200  # characters of a step's name that people see
GIVEN = "given"  # in the meta of its task: a digest of what it was done with

JOURNAL: ContextVar[StepJournal | None] = ContextVar("meantime.step_journal", default=None)


class DurableStep(NamedTuple):
    """One step of a run.

    run, name, call: which one it is; the same each time the run is repeated. Steps that share all three are
        told apart by their order.
    given: what it is done with, in JSON. A repeated run whose step is done with something else is refused.
    again: True if it may be executed again when nobody knows how it ended, or when it failed.
    """

    run: str
    name: str
    call: str = ""
    given: bytes = b""
    again: bool = False


class StepJournal:
    """The steps of one run.

    thread: its tasks are in this thread, and nobody is told of them.
    key: the same whenever the run is repeated, and never that of another run.
    """

    def __init__(self, thread: Thread, key: str) -> None:
        self._thread = thread
        self.key = check_text(key, "key", MOST_KEY)
        if not self.key.strip():
            raise InvalidInput("key is empty.", hint="Name the run, for example by the order it is about.")
        self._done: Counter[DurableStep] = Counter()
        self._runs = 0

    def next_run(self) -> str:
        """The id of the next run of an agent: the same one when they are repeated in the same order."""
        self._runs += 1
        return f"{self.key}:{self._runs}"

    async def perform(self, step: DurableStep, body: Callable[[], Awaitable[object]]) -> object:
        """The result of the step: recorded, or executed now.

        Raises what the body raises; TaskLost if nobody knows how it ended; TaskFailed, TaskCancelled or
        TaskTimedOut if it ended so before; Refused if it runs elsewhere now, or was done with something else.
        """
        alike = step._replace(given=b"", again=False)
        self._done[alike] += 1
        place = self._done[alike]
        for attempt in range(1, MOST_ATTEMPTS + 1):
            id = self._id(alike, place, attempt)
            found = await self._find(id)
            if found is None:
                return await self._execute(id, step, attempt, body)
            self._check(found, step)
            if found.status is Status.COMPLETED:
                return from_json(str(await self._thread.result(id)))
            if not step.again:
                raise _ended(found)
        raise Refused(
            f"The step {step.name!r} did not end in {MOST_ATTEMPTS} attempts.",
            code="too_many_attempts",
            hint="Begin a run with another key.",
        )

    def _id(self, alike: DurableStep, place: int, attempt: int) -> str:
        """All ids have one length, so none is the beginning of another."""
        words = to_json([self.key, alike.run, alike.name, alike.call, place, attempt])
        return f"step-{hashlib.sha256(words).hexdigest()[:40]}"

    async def _find(self, id: str) -> Task | None:
        try:
            return await self._thread.get(id)
        except NotFound:
            return None

    def _check(self, found: Task, step: DurableStep) -> None:
        if found.status in ACTIVE:
            raise _held(step)
        if found.meta.get(GIVEN) != _digest(step.given):
            raise Refused(
                f"The step {step.name!r} of the run {self.key!r} was recorded with other input.",
                code="another_run",
                hint="Use a key for one run only, with the same prompt and the same program each time.",
            )

    async def _execute(
        self, id: str, step: DurableStep, attempt: int, body: Callable[[], Awaitable[object]]
    ) -> object:
        """It begins when its beginning is on record, and its result counts when that is."""
        recorded = asyncio.Event()

        async def gated() -> str:
            JOURNAL.set(None)  # a step is one piece: an agent that runs within it has no steps of its own
            await recorded.wait()
            return to_json(await body()).decode()

        future = asyncio.ensure_future(gated())
        meta: dict[str, Json] = {
            "key": self.key, "run": step.run[:MOST_KEY], "attempt": attempt, GIVEN: _digest(step.given),
        }  # fmt: skip
        try:
            handle = await self._thread.adopt(
                future, name=step.name[:MOST_NAME], id=id, meta=meta, notify=False, timeout=-1
            )
            recorded.set()
            ended = await handle.wait()
        except Duplicate as problem:
            future.cancel()
            raise _held(step) from problem
        except BaseException:
            future.cancel()
            raise
        if ended.status is Status.COMPLETED:
            return from_json(future.result())
        if future.done() and not future.cancelled() and (problem := future.exception()) is not None:
            raise problem  # as it was raised: the agent knows what to do with it
        raise _ended(ended)


def _digest(given: bytes) -> str:
    return hashlib.sha256(given).hexdigest()


def _held(step: DurableStep) -> Refused:
    return Refused(
        f"The step {step.name!r} of this run is being executed by somebody else.",
        code="already_running",
        hint="Wait until the other one has ended; a key belongs to one run at a time.",
    )


def _ended(task: Task) -> TaskEnded:
    """For a step that is not executed again."""
    name = task.work.name
    match task.status:
        case Status.LOST:
            return TaskLost(f"Nobody knows how the step {name!r} ended: its process died.", task)
        case Status.FAILED:
            return TaskFailed(f"The step {name!r} failed: {getattr(task.outcome, 'message', '')}", task)
        case Status.TIMED_OUT:
            return TaskTimedOut(f"The step {name!r} took too long.", task)
        case _:
            return TaskCancelled(f"The step {name!r} was cancelled.", task)
