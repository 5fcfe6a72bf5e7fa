"""Worker threads for sync functions. Daemon threads: one that never ends cannot keep the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Threads:
    """Grows while nobody is idle, up to `most`; beyond that, jobs wait their turn."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, job: Callable[[], None]) -> None:
        """From the event loop only, so the count needs no lock. A job must not raise."""
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            name = f"meantime-{self._count + 1}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()  # or raises: no thread
            self._count += 1
        self._jobs.put(job)

    def _serve(self) -> None:
        while True:
            self._jobs.get()()
            self._idle.release()
