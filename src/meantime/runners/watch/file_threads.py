"""Calls on files that others provide, made beside the event loop: a network file system may never answer.

A few threads make all calls. One that does not come back in time keeps its thread, which is replaced; other
calls to the same device wait until it comes back, so one dead server costs a few threads, whatever the number
of watches. A path of which nobody knows the device yet stands for itself.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from meantime.ports.clock import Alarm, Clock

T = TypeVar("T")
THREADS = 4  # that make calls
FOR_UNKNOWN = 2  # of them, for paths whose device is not known
MOST_STUCK = 16  # that wait for calls which do not come back, before unknown paths have to wait, too
PATIENCE = 5.0  # seconds until a call counts as one that does not come back

Place = int | str  # a device, or a path whose device is not known


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
        self.late = asyncio.Event()  # it is back, or it has taken too long, or its place does not answer
        self.alarm: Alarm | None = None
        self.done.add_done_callback(lambda _: self.late.set())


class FileThreads:
    """The threads of one owner. They are daemons: one that hangs does not hold up the end of the program."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: deque[_Job[Any]] = deque()  # that wait for a thread
        self._unknown: deque[_Job[Any]] = deque()  # with a path whose device is not known
        self._parked: dict[Place, list[_Job[Any]]] = {}  # until that place answers again
        self._running: set[_Job[Any]] = set()
        self._stuck: set[_Job[Any]] = set()
        self._stuck_at: Counter[Place] = Counter()
        self._jobs: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Job[Any]] | None] = SimpleQueue()
        self._idle = 0  # threads that wait for a job

    @property
    def count(self) -> int:
        """Threads that there are."""
        return self._idle + len(self._running) + len(self._stuck)

    def submit(self, do: Callable[[], T], place: Place) -> _Job[T]:
        job = _Job(do, place)
        self._add(job)
        self._start_waiting()
        return job

    def _add(self, job: _Job[Any]) -> None:
        (self._unknown if _is_unknown(job) else self._known).append(job)

    def give_up(self, job: _Job[Any]) -> None:
        """Its thread is not counted on any longer."""
        job.late.set()
        if job in self._running:
            self._running.discard(job)
            self._stuck.add(job)
            self._stuck_at[job.place] += 1
            self._start_waiting()

    def wait_again(self, job: _Job[Any]) -> None:
        """One that was late has as much time once more."""
        if not job.done.done():
            job.late.clear()
            job.alarm = self._clock.call_later(PATIENCE, lambda: self.give_up(job))

    def _start_waiting(self) -> None:
        """Unknown paths never have all threads: a device that answers goes on."""
        while self._known and self._has_room(THREADS):
            self._start_or_park(self._known.popleft())
        while (
            self._unknown and self._has_room(THREADS) and sum(map(_is_unknown, self._running)) < FOR_UNKNOWN
        ):
            self._start_or_park(self._unknown.popleft())

    def _has_room(self, most: int) -> bool:
        return len(self._running) < most and len(self._running) + len(self._stuck) < most + MOST_STUCK

    def _start_or_park(self, job: _Job[Any]) -> None:
        if self._stuck_at[job.place] or (_is_unknown(job) and len(self._stuck) >= MOST_STUCK):
            self._parked.setdefault(job.place, []).append(job)
            job.late.set()
        else:
            self._start(job)

    def _start(self, job: _Job[Any]) -> None:
        self._running.add(job)
        job.alarm = self._clock.call_later(PATIENCE, lambda: self.give_up(job))
        if self._idle:
            self._idle -= 1
        else:
            threading.Thread(target=self._serve, name="meantime-files", daemon=True).start()
        self._jobs.put((asyncio.get_running_loop(), job))

    def _serve(self) -> None:
        while (given := self._jobs.get()) is not None:
            loop, job = given
            result, problem = cast("Any", None), None
            try:
                result = job.do()
            except Exception as error:
                problem = error
            try:
                loop.call_soon_threadsafe(self._over, job, result, problem)
            except RuntimeError:
                return  # the loop is closed: nobody is left to be told

    def _over(self, job: _Job[Any], result: Any, problem: Exception | None) -> None:
        if job.alarm is not None:
            job.alarm.cancel()
        self._running.discard(job)
        self._idle += 1
        if job in self._stuck:
            self._stuck.discard(job)
            self._stuck_at -= Counter({job.place: 1})
            self._unpark()
        if self._idle > THREADS:
            self._idle -= 1
            self._jobs.put(None)
        if not job.done.done():
            if problem is None:
                job.done.set_result(result)
            else:
                job.done.set_exception(problem)
        self._start_waiting()

    def _unpark(self) -> None:
        ready = [place for place in self._parked if not self._stuck_at[place]]
        for place in ready:
            for job in self._parked.pop(place):
                self._add(job)

    def close(self) -> None:
        for _ in range(self._idle):
            self._jobs.put(None)
        self._idle = 0


def _is_unknown(job: _Job[Any]) -> bool:
    return isinstance(job.place, str)


class FileCalls:
    """The calls of one watch, one after the other."""

    def __init__(self, path: str, threads: FileThreads) -> None:
        self.place: Place = path  # a call that learns the device says so here
        self._path = path
        self._threads = threads
        self._pending: _Job[Any] | None = None

    async def make(self, do: Callable[[], T]) -> T:
        """Its result; of the call before, if that one was not back in time.

        Raises:
            Hangs: It is not back in time. Call again with the same function.
        """
        job = self._pending
        if job is None:
            job = self._pending = self._threads.submit(do, self.place)
        else:
            self._threads.wait_again(job)
        try:
            await job.late.wait()
        except asyncio.CancelledError:
            self._threads.give_up(job)
            raise
        if not job.done.done():
            raise Hangs(self._path)
        self._pending = None
        return job.done.result()

    def close(self, then: Callable[[], object]) -> None:
        """`then` is called once the last call is back, as one more of them."""
        job = self._pending
        if job is None or job.done.done():
            self._threads.submit(then, self.place)
        else:
            job.done.add_done_callback(lambda _: self._threads.submit(then, self.place))
