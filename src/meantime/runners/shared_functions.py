"""Functions of an owner that others are connected to: each runs in the process that handed it in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Task
from meantime.kernel.outcomes import RESTARTED, Report
from meantime.ports.executors import Executors, Relay
from meantime.ports.runner import Abilities, Assignment, Context, Leftovers

from .function import FunctionRunner


class SharedFunctionRunner:
    """Lasting, because an executor outlives the owner: the next one goes on waiting for its endings.
    The owner's own functions do not last; what is left of them is lost."""

    kind = "call"
    abilities = Abilities(adopt=True)

    def __init__(self, own: FunctionRunner, executors: Executors) -> None:
        self._own = own
        self._executors = executors

    def check(self, task: Task, assignment: Assignment) -> None:
        if task.executor is None:
            self._own.check(task, assignment)
        elif task.retry:
            raise InvalidInput(
                "A function of a connected process ends with that process, so it cannot be retried.",
                hint="Leave retry out, or hand off a command.",
            )
        elif not self._executors.may_run(task.executor):
            raise InvalidInput(
                "The process that has this function is not connected.", hint="Connect it, and start again."
            )

    def can_run(self, task: Task) -> bool:
        if task.executor is None:
            return self._own.can_run(task)
        return self._executors.may_run(task.executor)

    async def exists(self, task: Task) -> bool:
        return False

    async def run(self, assignment: Assignment, context: Context) -> Report:
        if assignment.task.executor is not None:
            return await self._executors.perform(assignment, cast("Relay", context))
        if assignment.again:
            return Report(lost=RESTARTED)
        return await self._own.run(assignment, context)

    # -- what is lasting about it

    def open(self) -> None:
        """Nothing is kept outside of the ledger."""

    async def close(self) -> None: ...

    def prepare(self, task: Task) -> None: ...

    def knows_whose(self, task: Task) -> bool:
        return False

    def age(self, task: Task) -> float | None:
        """Only the executor knows. It is not here yet, and says so when it is."""
        return None

    async def detach(self, task: Task) -> bool:
        return task.executor is not None and self._executors.detach(task)

    def keep(self, task: Task, kept: bool) -> None: ...

    async def end_leftovers(self, task: Task) -> Leftovers:
        return Leftovers()

    def forget(self, task: Task) -> None: ...

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None: ...
