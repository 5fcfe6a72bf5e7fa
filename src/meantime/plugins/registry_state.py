"""The state that the plugins of one registry share: a thread of conversation, a config, a limit, a memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from meantime.blocking import Meantime
from meantime.dialects.jaato.background_config import NO_LIMIT, BackgroundConfig
from meantime.kernel.errors import NotFound
from meantime.kernel.estimates import Estimates, tool_key
from meantime.kernel.ids import ENTROPY, task_id
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.model import Task

HISTORY = 1_000  # completed tasks that estimates are learned from at first, and tasks listed at once


class Workshop:
    """The count of what runs is the ledger's own, so no ending and no failure can leave it wrong."""

    def __init__(self, mt: Meantime, thread: str, config: BackgroundConfig) -> None:
        self.thread = mt.thread(thread)
        self.thread_id = thread
        self.config = config
        self._mt = mt
        self._plugins: set[str] = set()
        self._counts: dict[str, Callable[[], int]] = {}  # of plugins that keep their tasks themselves
        self._taking = threading.Lock()
        self._under_way: set[str] = set()  # ids that have a place and are not on record yet
        self._watched: set[str] = set()  # tasks to learn from once they have ended
        self._estimates = Estimates()
        self._learning = threading.Lock()  # around every use of the estimates: tools run on any thread
        self._remembering = threading.Lock()
        self._remembered = False

    def admit(self, plugin: str, count: Callable[[], int] | None = None) -> None:
        self._plugins.add(plugin)
        if count is not None:
            self._counts[plugin] = count

    def dismiss(self, plugin: str) -> None:
        self._plugins.discard(plugin)
        self._counts.pop(plugin, None)

    # -- max_concurrent_tasks

    @contextmanager
    def place(self, id: str | None = None) -> Generator[str]:
        """One of the places that there are, for a task with this id: taken now, kept by the task once
        it is on record, and free again if it never gets there. RuntimeError where none is left."""
        id = id or new_id()
        self.sweep()
        with self._taking:
            running = len({task.id for task in self.active()} | self._under_way) + self._elsewhere()
            most = self.config.max_concurrent_tasks
            if most != NO_LIMIT and running >= most:
                raise RuntimeError(
                    f"{running} of at most {most} background tasks are running. Wait for one to end, "
                    "cancel one, or raise BackgroundConfig.max_concurrent_tasks."
                )
            self._under_way.add(id)
        try:
            yield id
            self._watched.add(id)
        finally:
            with self._taking:
                self._under_way.discard(id)

    def active(self, plugin: str | None = None) -> list[Task]:
        """Tasks of the plugins, or of one of them, that have not ended; oldest first."""
        found: list[Task] = []
        while len(page := self.thread.list(limit=HISTORY, offset=len(found))) == HISTORY:
            found += page
        wanted = self._plugins if plugin is None else {plugin}
        return [task for task in [*found, *page][::-1] if task.meta.get("plugin") in wanted]

    def sweep(self) -> None:
        """Whenever something starts: endings that are older than the retention leave the listings."""
        ended = [task.id for task in self.thread.list(ENDED) if task.meta.get("plugin") in self._plugins]
        if ended:
            self.thread.clear(*ended, older_than=self.config.completed_task_retention_seconds)

    def _elsewhere(self) -> int:
        return sum(count() for count in list(self._counts.values()))

    # -- estimates

    def learn(self, tool: str, like: str | None, seconds: float) -> None:
        if like is not None:
            with self._learning:
                self._estimates.learn(tool_key(tool, like), seconds)

    def estimate(self, tool: str, like: str | None) -> float | None:
        """Learned from the ledger, over all threads and restarts, and from the calls of this process."""
        with self._remembering:
            if not self._remembered:
                # The store may know of an ending that the runtime has not heard of: that one comes later.
                history = [task for task in self._mt.list("completed", limit=HISTORY) if task.ended]
                self._learn_from(reversed(history))
                self._remembered = True
                self._watched -= {task.id for task in history}
            self._learn_from_watched()
        if like is None:
            return None
        with self._learning:
            usual = self._estimates.of(tool_key(tool, like))
        return None if usual is None else usual.seconds

    def _learn_from(self, tasks: Iterable[Task]) -> None:
        with self._learning:
            for task in tasks:
                self._estimates.learn_from(task)

    def _learn_from_watched(self) -> None:
        if not self._watched:
            return
        active = {task.id for task in self.active()}
        for id in [id for id in list(self._watched) if id not in active]:
            self._watched.discard(id)
            try:
                self._learn_from([self.thread.get(id)])
            except NotFound:
                continue  # purged in the meantime


def new_id() -> str:
    return task_id(os.urandom(ENTROPY))
