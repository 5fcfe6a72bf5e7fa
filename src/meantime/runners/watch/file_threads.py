"""Calls on files that others provide, made beside the event loop: a network file system may never answer.

The calls to one device are made one after the other: a dead server holds up its own watches and one thread.
A path of which nobody knows the device yet stands for its folder.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

from meantime.ports.clock import Clock

T = TypeVar("T")
MOST_DEVICES = 16  # that are called at the same time
MOST_FOLDERS = 16  # likewise, where the device is not known: these cannot use up the threads of the others
PATIENCE = 5.0  # seconds until a call counts as one that does not come back
LOOK_AGAIN = 60.0  # seconds after which an idle thread looks whether it is still wanted

Place = int | str  # a device, or a folder whose device is not known


class Hangs(Exception):
    """The call is not back yet. It goes on: the next `make` waits for the same one."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} cannot be looked at: its file system has not answered for {PATIENCE:.0f} seconds."
        )


class _Job(Generic[T]):
    def __init__(self, do: Callable[[], T], place: Place) -> None:
        self.do = do
        self.place = place
        self.done: asyncio.Future[T] = asyncio.get_running_loop().create_future()


class FileThreads:
    """The threads of one owner. They are daemons: one that hangs does not hold up the end of the program."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: dict[Place, deque[_Job[Any]]] = {}  # by place; the place that has waited longest first
        self._made: dict[Place, _Job[Any]] = {}  # the call that is being made now
        self._jobs: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Job[Any]] | None] = SimpleQueue()
        self._idle = 0  # threads that wait for a job
        self._is_closed = False

    @property
    def count(self) -> int:
        """Threads that there are."""
        return self._idle + len(self._made)

    def submit(self, do: Callable[[], T], place: Place) -> _Job[T]:
        job = _Job(do, place)
        self._waiting.setdefault(place, deque()).append(job)
        self._start_waiting()
        return job

    def forget(self, job: _Job[Any]) -> bool:
        """Takes back a call that nobody has begun; False if it has begun."""
        waiting = self._waiting.get(job.place)
        if waiting is None or job not in waiting:
            return False
        waiting.remove(job)
        if not waiting:
            del self._waiting[job.place]
        return True

    def _start_waiting(self) -> None:
        folders = sum(isinstance(place, str) for place in self._made)
        room = {True: MOST_FOLDERS - folders, False: MOST_DEVICES - (len(self._made) - folders)}
        for place in [place for place in self._waiting if place not in self._made]:
            if room[isinstance(place, str)] > 0:
                room[isinstance(place, str)] -= 1
                self._start(place)

    def _start(self, place: Place) -> None:
        waiting = self._waiting.pop(place)
        job = self._made[place] = waiting.popleft()
        if waiting:
            self._waiting[place] = waiting  # behind the others
        if self._idle:
            self._idle -= 1
        else:
            threading.Thread(target=self._serve, name="meantime-files", daemon=True).start()
        self._jobs.put((asyncio.get_running_loop(), job))

    def _serve(self) -> None:
        stays = True
        while stays:
            try:
                given = self._jobs.get(timeout=LOOK_AGAIN)
            except Empty:
                stays = not self._is_closed
                continue
            if given is None:
                return
            loop, job = given
            result, problem = cast("Any", None), None
            try:
                result = job.do()
            except Exception as error:
                problem = error
            stays = not self._is_closed
            try:
                loop.call_soon_threadsafe(self._over, job, result, problem, stays)
            except RuntimeError:
                return  # the loop is closed: nobody is left to be told

    def _over(self, job: _Job[Any], result: Any, problem: Exception | None, stays: bool) -> None:
        del self._made[job.place]
        if not job.done.done():
            if problem is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(problem)
                job.done.exception()  # nobody may be waiting for it
        if stays:
            self._idle += 1
        self._start_waiting()
        if self._is_closed:
            self._end_idle()

    def _end_idle(self) -> None:
        for _ in range(self._idle):
            self._jobs.put(None)
        self._idle = 0

    def close(self) -> None:
        """Calls that wait are still made: they close files."""
        self._is_closed = True
        self._end_idle()


class FileCalls:
    """The calls of one watch, one after the other."""

    def __init__(self, path: str, threads: FileThreads) -> None:
        self.place: Place = os.path.dirname(path)  # a call that learns the device says so here
        self.was_late = False  # the last result: it was given up on before it came
        self._path = path
        self._threads = threads
        self._pending: _Job[Any] | None = None
        self._is_late = False  # the pending one
        self._has_answered = False

    async def make(self, do: Callable[[], T]) -> T:
        """Its result; of the call before, if that one was not back in time.

        Raises:
            Hangs: It is not back in time. Call again with the same function.
        """
        job = self._pending
        if job is None:
            job = self._pending = self._threads.submit(do, self.place)
        await self._wait(job)
        if not job.done.done():
            self._is_late = True
            raise Hangs(self._path)
        self._pending = None
        self.was_late, self._is_late, self._has_answered = self._is_late, False, True
        return job.done.result()

    async def _wait(self, job: _Job[Any]) -> None:
        over = asyncio.Event()
        alarm = self._threads.clock.call_later(PATIENCE, over.set)
        job.done.add_done_callback(lambda _: over.set())
        try:
            await over.wait()
        finally:
            alarm.cancel()

    def when_back(self, then: Callable[[], object]) -> None:
        """Calls it once the call that hangs is back."""
        if self._pending is not None:
            self._pending.done.add_done_callback(lambda _: then())

    def close(self, then: Callable[[], object]) -> None:
        """`then` is called once the last call is back, as one more of them; not if none was ever made, which
        leaves nothing to close."""
        job = self._pending
        if job is not None and not job.done.done() and not self._threads.forget(job):
            job.done.add_done_callback(lambda _: self._threads.submit(then, job.place))
        elif self._has_answered:
            self._threads.submit(then, self.place)
