"""A started task, and the ways to name one."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from meantime.conversation.log import Log
from meantime.kernel.errors import NotFound
from meantime.kernel.ids import is_generated
from meantime.kernel.model import Output, Task
from meantime.kernel.plain_text import plain
from meantime.ports.tasks import CancelAnswer, Tasks

T_co = TypeVar("T_co", covariant=True)
Until = Literal["all", "any"]
Ref: TypeAlias = "str | Handle[Any] | Task"


def ref_of(ref: Any) -> str:
    """The id of a task, a handle or a notice, or an id itself; all else is checked where it is used."""
    if isinstance(ref, str):
        return plain(ref)
    try:
        found = getattr(ref, "id", ref)
    except Exception:  # of a class of the caller's own
        found = ref
    return plain(found) if isinstance(found, str) else found


class Handle(Generic[T_co]):
    """A started task. `task` is how it was then; `get()` is how it is now."""

    __slots__ = ("_tasks", "_thread", "task")

    def __init__(self, tasks: Tasks, thread: str, task: Task) -> None:
        self._tasks = tasks
        self._thread = thread
        self.task = task

    @property
    def id(self) -> str:
        """The task's id."""
        return self.task.id

    async def get(self) -> Task:
        """The task as it is now."""
        task = await self._tasks.get(self.id, self._thread)
        if task.id != self.id:
            raise NotFound.task(self.id, self._thread)
        return task

    async def wait(self, timeout: float | None = None) -> Task:
        """The task when it has ended, or as it is when the time is over."""
        await self._check()
        return (await self._tasks.wait([self.id], self._thread, timeout=timeout))[0]

    async def result(self, timeout: float | None = None) -> T_co:
        """Waits for the result and returns it whole; any other ending is a TaskEnded error."""
        await self.wait(timeout)
        return cast("T_co", await self._tasks.result(self.id, self._thread))

    async def output(self, *, wait: float = 0) -> Output:
        """The readable output of the task now; `wait` gives it so many seconds to end first."""
        await self._check()
        return await self._tasks.output(self.id, self._thread, wait=wait)

    @property
    def log(self) -> Log:
        """The output of a command: read, tail or follow it."""
        return Log(self._tasks, self.id, self._thread)

    async def send(self, data: str | bytes = "", *, eof: bool = False) -> str:
        """Sends a running command more of its stdin, or a running agent a text.

        data: text or bytes.
        eof: True closes the stdin.
        """
        await self._check()
        return await self._tasks.send(self.id, self._thread, data, eof=eof)

    async def cancel(self, reason: str = "", *, wait: bool = False) -> CancelAnswer:
        """Asks the task to stop. Asking twice is harmless.

        reason: kept with the outcome.
        wait: True answers with the ending.
        """
        await self._check()
        return await self._tasks.cancel(self.id, self._thread, by="agent", reason=reason, wait=wait)

    async def _check(self) -> None:
        """That the task is still there, if its id was given: a verb takes prefixes, too, so once `job-6` is
        purged it would mean `job-61`. An id of ours is never the prefix of another."""
        if not is_generated(self.id):
            await self.get()

    def __repr__(self) -> str:
        return f"<Handle {self.id} {self.task.title!r}>"
