"""Threads for calls that somebody waits for. Nobody queues: a quick tool must never look slow."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue

Job = Callable[[], None]
IDLE = 30.0  # seconds after which a thread that nobody needs ends


class Workers:
    """An idle thread, or a new one. Daemons: a tool that never returns cannot keep the process."""

    def __init__(self, idle: float = IDLE) -> None:
        self._idle: deque[_Worker] = deque()  # the last to work is the first to work again
        self._patience = idle

    def submit(self, job: Job) -> None:
        """From any thread. A job must not raise. RuntimeError where no thread can be had."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker(self._idle, self._patience)
            worker.start()
        worker.jobs.put(job)


class _Worker(threading.Thread):
    def __init__(self, idle: deque[_Worker], patience: float) -> None:
        super().__init__(name="meantime-call", daemon=True)
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self._others = idle
        self._patience = patience

    def run(self) -> None:
        while (job := self._next()) is not None:
            job()
            del job  # or its result would live until the next one comes
            self._others.append(self)

    def _next(self) -> Job | None:
        try:
            return self.jobs.get(timeout=self._patience)
        except Empty:
            pass
        try:
            self._others.remove(self)
        except ValueError:
            return self.jobs.get()  # somebody has just chosen us
        return None
