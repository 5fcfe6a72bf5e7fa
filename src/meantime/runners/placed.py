"""Work of one kind that runs here or, where its task names a pool, at a worker on another machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from meantime.kernel.errors import InvalidInput, NotFound
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Chunk, Lost, Task
from meantime.kernel.outcomes import RESTARTED, Report, is_unheard
from meantime.ports.executors import Relay
from meantime.ports.runner import Assignment, Context, LastingRunner, Leftovers, Runner, SpeakingRunner
from meantime.ports.worker_pools import FilingRunner, PlacedWork


class PlacedRunner:
    """Lasting, because a worker outlives the owner: the next one follows its runs. `own` is the runner of
    everything that is not placed. Its files are where the output of ended placed work is kept, too."""

    def __init__(self, own: Runner, workers: PlacedWork) -> None:
        self.kind = own.kind
        self.abilities = replace(own.abilities, adopt=True)
        self._own = own
        self._workers = workers
        self._lasting = cast("LastingRunner", own) if own.abilities.adopt else None
        if own.abilities.output:
            workers.keep_output(own.kind, self._files)

    def check(self, task: Task, assignment: Assignment) -> None:
        """The machine of a command is its worker's, so only that can check what the command needs."""
        if not task.place or assignment.target is not None:
            self._own.check(task, assignment)
        if task.place and task.work.kind == "call":
            _check_function(task)

    def can_run(self, task: Task) -> bool:
        return task.work.faithful if task.place else self._own.can_run(task)

    async def exists(self, task: Task) -> bool:
        return False

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        if task.place:
            return await self._workers.perform(assignment, cast("Relay", context), self._files(task))
        if assignment.again and self._lasting is None:
            return Report(lost=RESTARTED)
        return await self._own.run(assignment, context)

    def _files(self, task: Task) -> Mapping[str, Path]:
        return cast("FilingRunner", self._own).output_files(task) if self.abilities.output else {}

    # -- what is lasting about it

    def open(self) -> None:
        if self._lasting is not None:
            self._lasting.open()

    async def close(self) -> None:
        if self._lasting is not None:
            await self._lasting.close()

    def prepare(self, task: Task) -> None:
        if self._lasting is not None and not task.place:
            self._lasting.prepare(task)

    def knows_whose(self, task: Task) -> bool:
        """A copied ledger must leave placed work alone: the original goes on with it."""
        return not task.place and self._lasting is not None and self._lasting.knows_whose(task)

    def age(self, task: Task) -> float | None:
        """Only the worker knows; it says so."""
        return None if task.place or self._lasting is None else self._lasting.age(task)

    async def detach(self, task: Task) -> bool:
        if task.place:
            return self._workers.detach(task)
        return self._lasting is not None and await self._lasting.detach(task)

    def keep(self, task: Task, kept: bool) -> None:
        if self._lasting is not None:
            self._lasting.keep(task, kept)

    async def end_leftovers(self, task: Task) -> Leftovers:
        if task.place and task.run.claim is not None:
            return await self._workers.end_leftovers(task)
        return Leftovers() if self._lasting is None else await self._lasting.end_leftovers(task)

    def forget(self, task: Task) -> None:
        if self._lasting is not None:
            self._lasting.forget(task)

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None:
        if self._lasting is not None:
            await self._lasting.sweep(active, known, older_than)

    # -- its output: at the worker while it runs, here when it has ended. The output of a run that was given
    # up stays at the worker until that reports the ending.

    @property
    def _speaking(self) -> SpeakingRunner:
        return cast("SpeakingRunner", self._own)

    def _is_elsewhere(self, task: Task) -> bool:
        if not task.place or task.run.claim is None:
            return False
        was_given_up = isinstance(task.outcome, Lost) or is_unheard(task.outcome)
        return not task.ended or (was_given_up and not any(map(Path.exists, self._files(task).values())))

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk:
        if self._is_elsewhere(task):
            with suppress(NotFound):  # its worker has nothing of it, and never will
                return await self._workers.read(task, stream, offset, most)
        return await self._speaking.read(task, stream, offset, most)

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk:
        if self._is_elsewhere(task):
            with suppress(NotFound):
                return await self._workers.tail(task, stream, lines, most)
        return await self._speaking.tail(task, stream, lines, most)

    async def changed(self, task: Task, stream: str, seen: int) -> bool:
        if self._is_elsewhere(task):
            return await self._workers.changed(task, stream, seen)
        return await self._speaking.changed(task, stream, seen)

    async def whole(self, path: str) -> bytes:
        return await self._speaking.whole(path)

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None:
        if self._is_elsewhere(task):
            await self._workers.write(task, data, eof=eof)
        elif task.place and task.status is Status.QUEUED:
            raise NotFound(f"Task {task.id} waits for a worker, so it cannot be sent anything yet.")
        else:
            await self._speaking.write(task, data, eof=eof)


def _check_function(task: Task) -> None:
    """Workers find functions by name, in their own modules: nothing is shipped to them."""
    module, _, path = task.work.name.partition(":")
    if not path or "<" in path or module in ("__main__", "?"):
        raise InvalidInput(
            f"{task.work.name} cannot run at {task.place!r}: workers find a function by module and name.",
            hint="Define it at the top of a module that the workers list in `tools`.",
            code="not_placeable",
        )
    if not task.work.faithful:
        raise InvalidInput(
            f"{task.title} cannot run at {task.place!r}: its arguments are not JSON, or are too big.",
            hint="Give it texts, numbers, booleans, None, lists and dicts, and no bound method or partial.",
            code="not_placeable",
        )
