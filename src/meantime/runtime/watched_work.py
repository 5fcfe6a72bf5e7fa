"""watched work: what watches see of other tasks, and where they put what they find."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from meantime.kernel.argument_checks import shown
from meantime.kernel.change import Change
from meantime.kernel.errors import InvalidInput, NotFound, Refused
from meantime.kernel.event_notices import Events
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Chunk, Json, Task, fence_of
from meantime.kernel.notices import summary
from meantime.kernel.payloads import one_line
from meantime.kernel.watches import KIND, WatchSpec, stored, title_of
from meantime.kernel.work import Order
from meantime.ports.engine import Engine
from meantime.ports.runner import SpeakingRunner
from meantime.ports.store import Committed
from meantime.ports.watch_ledger import FolderLooker, Standing
from meantime.system.platform import boot, stat

from .queries import Looking
from .record import Record
from .run_notices import RunNotices

MOST_PATH, MOST_NAME = 4_096, 255  # bytes of a path, and of a name in it
TITLE = 60  # characters of the name of a task, in that of its watch
FOLLOWED = 0.2  # seconds after which a running task that nobody follows yet is looked at again


class WatchedWork:
    def __init__(self, record: Record, looking: Looking, notices: RunNotices, engine: Engine) -> None:
        self._record = record
        self._looking = looking
        self._notices = notices
        self._engine = engine
        self._listening: dict[tuple[str, str], list[Callable[[], object]]] = {}

    # -- before the start

    async def order(self, order: Order, *, is_delayed: bool = False) -> Order:
        """The order of a watch with whole ids in place of beginnings of them, and with when it begins: now,
        or, where it is delayed, with its run.

        Raises:
            NotFound: There is no such task or process.
            Refused: The task that it should look at has no output.
            InvalidInput: There can be no such file, or there is no such folder for its command.
        """
        spec = msgspec.convert(order.work.input, WatchSpec)
        await self._check_paths(spec)
        name = ""
        if spec.source in ("log", "task"):
            task = await self._looking.find(cast("str", spec.of), None)
            spec, name = replace(spec, of=task.id), one_line(task.title, TITLE)
            if spec.source == "log":
                self._speaking(task)
                if spec.new and not is_delayed:
                    chunk = await self.read(task.id, spec.stream, 1 << 62, 1)
                    spec = replace(spec, begin=chunk.total)
        if spec.source == "pid":
            found = stat(cast("int", spec.of))
            if found is None:
                raise NotFound(f"There is no process {spec.of}.", hint="It may have ended.")
            spec = replace(spec, started=found.started)
        spec = replace(spec, boot=boot(), began=None if is_delayed else self._record.clock.monotonic())
        return order._replace(work=replace(order.work, name=title_of(spec, name), input=stored(spec)))

    async def _check_paths(self, spec: WatchSpec) -> None:
        """Paths that no look would ever find: such a watch would never tell of anything."""
        runner = cast("FolderLooker", self._engine.runner(KIND))
        if spec.cwd is not None and not await runner.is_folder(spec.cwd):
            raise InvalidInput(
                f"cwd={shown(spec.cwd)} is not a folder.", hint="Name a folder that the command can run in."
            )
        if spec.source == "file" and _is_too_long(os.fsencode(cast("str", spec.of))):
            raise InvalidInput(f"file={shown(spec.of)} has a name that is too long.", hint="Shorten it.")

    # -- what others do

    def _speaking(self, task: Task) -> SpeakingRunner:
        runner = self._engine.runner(task.work.kind)
        if not runner.abilities.output:
            raise Refused(
                f"Task {task.id} has no log: {task.work.kind} tasks have none.",
                code="no_log",
                hint="Watch its state: Watch(task=…).",
            )
        return cast("SpeakingRunner", runner)

    async def _task(self, id: str) -> Task:
        task = self._record.live.get(id) or await self._record.store.load(id)
        if task is None:
            raise NotFound.task(id)
        return task

    async def read(self, id: str, stream: str, offset: int, most: int) -> Chunk:
        task = await self._task(id)
        chunk = await self._speaking(task).read(task, stream, offset, most)
        return replace(chunk, ended=task.ended and chunk.next >= chunk.total)

    async def wait_output(self, id: str, stream: str, seen: int) -> None:
        task = await self._task(id)
        if task.ended or await self._speaking(task).changed(task, stream, seen):
            return
        if self._record.live.get(id) is not task:
            return  # it has just ended, or began
        over = asyncio.Event()
        stop = self.listen("task", id, over.set)
        alarm = None
        if task.status is not Status.QUEUED:  # its run was launched, and nobody follows it yet
            alarm = self._record.clock.call_later(FOLLOWED, over.set)
        try:
            await over.wait()
        finally:
            stop()
            if alarm is not None:
                alarm.cancel()

    async def standing(self, source: str, id: str) -> Standing:
        if source == "task":
            task = await self._task(id)
            return Standing(f"{task.status}: {summary(task)}" if task.ended else str(task.status), task.ended)
        if source == "thread":
            active = [one for one in self._record.of_thread.get(id, {}).values() if one.work.kind != KIND]
            return Standing(f"{len(active)} active" if active else "idle")
        return await self._batch(id)

    async def _batch(self, id: str) -> Standing:
        found = await self._record.store.batch(id, None)
        if found is None:
            return Standing("empty")
        failed = f", {found.failed} failed" if found.failed else ""
        return Standing(f"{found.ended} of {found.total} ended{failed}", ended=not found.active)

    def listen(self, source: str, id: str, wake: Callable[[], object]) -> Callable[[], None]:
        key = (source, id)
        if not self._listening:  # whoever watches nothing pays nothing
            self._record.listeners.append(self._on_commit)
        self._listening.setdefault(key, []).append(wake)

        def stop() -> None:
            found = self._listening.get(key)
            if found is not None and wake in found:
                found.remove(wake)
                if not found:
                    del self._listening[key]
                if not self._listening:
                    self._record.listeners.remove(self._on_commit)

        return stop

    def _on_commit(self, change: Change, committed: Committed) -> None:
        task = change.task
        for key in (("task", task.id), ("thread", task.thread), ("batch", task.batch)):
            for wake in tuple(self._listening.get(key, ())):
                wake()

    # -- what a watch finds

    async def found(self, task: Task, events: Events, cursor: Json) -> bool:
        known = self._record.live.get(task.id)
        if known is None or fence_of(known.run) != fence_of(task.run):
            return False
        return await self._notices.found(task, events, cursor)

    async def save(self, task: Task, was: Json, cursor: Json) -> bool:
        def kept(now: Task) -> dict[str, Any] | None:
            if now.ended or fence_of(now.run) != fence_of(task.run) or now.run.cursor != was:
                return None
            return {"run": replace(now.run, cursor=cursor)}

        if task.id not in self._record.live:
            return False
        return (await self._record.amend(task.id, kept)).run.cursor == cursor


def _is_too_long(path: bytes) -> bool:
    """By the limits that systems have: asking the file system might take for ever."""
    return len(path) >= MOST_PATH or any(len(name) > MOST_NAME for name in path.split(b"/"))
