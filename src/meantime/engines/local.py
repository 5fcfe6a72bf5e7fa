"""The local engine: a run is performed in this process, on this event loop."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterable
from typing import cast

from meantime.execution.containment import Escape, is_ours_to_keep, words
from meantime.kernel.bounds import DETAIL
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.plain_text import escape_surrogates
from meantime.ports.runner import Assignment, Context, LastingRunner, Runner, Stopped


class LocalEngine:
    def __init__(self, runners: Iterable[Runner]) -> None:
        self._runners = {runner.kind: runner for runner in runners}
        self._performing: dict[str, tuple[asyncio.Task[object], Context]] = {}

    async def open(self) -> None:
        for runner in self.lasting():
            runner.open()

    async def close(self) -> None:
        """Runs that were left behind end with the process; nobody waits for them."""
        for runner in self.lasting():
            await runner.close()

    def lasting(self) -> list[LastingRunner]:
        found = [runner for runner in self._runners.values() if runner.abilities.adopt]
        return cast("list[LastingRunner]", found)

    def runner(self, kind: str) -> Runner:
        try:
            return self._runners[kind]
        except KeyError:
            hint = f"There are runners for: {', '.join(sorted(self._runners))}."
            code = None
            if kind == "agent":
                hint += " Name an agent: [agents.NAME] in the configuration, or open(…, agents={…})."
                code = "unknown_agent"
            raise InvalidInput(f"There is no runner for {kind!r} work here.", hint=hint, code=code) from None

    async def perform(self, assignment: Assignment, context: Context) -> Report:
        me = asyncio.current_task()
        assert me is not None
        id = assignment.task.id
        mine = (me, context)
        self._performing[id] = mine
        try:
            return await self.runner(assignment.task.work.kind).run(assignment, context)
        except asyncio.CancelledError as problem:
            # Without a stop of ours it cancelled itself, or its loop is coming down: an ending, too.
            return Report(stopped=context.stops > 0, exception=problem)
        except Stopped as problem:
            return Report(stopped=True, exception=problem)
        except BaseException as problem:  # SystemExit and KeyboardInterrupt would end our loop, too
            if isinstance(problem, GeneratorExit) and not _is_running(me):
                raise  # this coroutine is being closed; the work did not raise it
            if isinstance(problem, KeyboardInterrupt) and is_ours_to_keep(problem):
                raise  # somebody has pressed Ctrl+C
            return Report(error=failure(problem), exception=problem)
        finally:
            if self._performing.get(id) is mine:  # not that of a later run of the same task
                del self._performing[id]
            while me.cancelling():
                me.uncancel()  # that was for the work; what follows it must not be interrupted

    def stop(self, task: Task) -> None:
        found = self._performing.get(task.id)
        if found is not None:
            me, context = found
            context.count_stop()
            me.cancel()


def _is_running(task: asyncio.Task[object]) -> bool:
    try:
        return asyncio.current_task() is task
    except RuntimeError:
        return False  # no loop is left


def failure(problem: BaseException) -> Failed:
    """The exception of the work, in words: the message for the agent, the traceback for debugging."""
    raised = problem.__cause__ if isinstance(problem, Escape) and problem.__cause__ else problem
    detail = "".join(traceback.format_exception(problem, limit=-20, chain=False))
    return Failed(
        escape_surrogates(words(problem)),
        code=type(raised).__name__,
        detail=escape_surrogates(detail)[-DETAIL:],
    )
