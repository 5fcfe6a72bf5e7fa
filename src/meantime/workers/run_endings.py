"""The endings that workers report: their output is copied, they are recorded, and only then acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from meantime.kernel.errors import NotFound, Refused
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task, fence_of
from meantime.link import wire_errors
from meantime.link.frames import Fence, from_wire
from meantime.ports.worker_pools import CurrentTasks, PlacedTasks

from . import messages as say
from .effects import OwnerEffect, StopStray
from .followed_run import FollowedRun, TellWorker
from .output_copy import copy_files
from .owner_state import OwnerState
from .worker_requests import WorkerRequests

OutputFiles = Callable[[Task], Mapping[str, Path]]


class RunEndings:
    def __init__(
        self,
        state: OwnerState,
        requests: WorkerRequests,
        tell: TellWorker,
        counts: Counter[str],
        patience: float,
    ) -> None:
        self._state = state
        self._requests = requests
        self._tell = tell
        self._counts = counts
        self._patience = patience
        self._unheard: dict[str, tuple[str, str, Fence]] = {}  # tasks whose ending is being recorded
        self._copying: set[str] = set()  # nonces of endings whose output is being copied
        self.files: dict[str, OutputFiles] = {}  # by kind: where the output of a task is kept here
        self._ledger: PlacedTasks | None = None
        self._record: CurrentTasks | None = None

    def join(self, ledger: PlacedTasks, record: CurrentTasks) -> None:
        self._ledger, self._record = ledger, record

    def recorded(self, task: Task) -> list[OwnerEffect]:
        """The ledger moved on: an ending that it has now is acknowledged."""
        worker, nonce, fence = self._unheard.get(task.id, ("", "", (0, 0)))
        if not nonce or not (task.ended or fence_of(task.run) != fence):
            return []
        del self._unheard[task.id]
        return self._state.recorded(task.id, worker, nonce)

    async def conclude(
        self, run: FollowedRun | None, task: str, worker: str, ended: say.EndedMessage
    ) -> list[OwnerEffect]:
        """The output is here before the ending is recorded, and recorded before the worker forgets it."""
        if run is None:
            self._state.not_concluded(task)
            return []
        was_over = await self._is_over(task, ended.fence)
        spill = await copy_files(self._requests, run.claim, ended, run.files, self._patience)
        run.relay(ended.said, ended.age)
        await run.note_left(ended.events)
        if not was_over:
            self._unheard[task] = (worker, ended.nonce, ended.fence)
        self._counts["lost_at_worker"] += bool(ended.report.lost)
        run.end(replace(from_wire(ended.report), spill=spill))
        # What was left behind may not even be recorded.
        return self._state.recorded(task, worker, ended.nonce) if was_over else []

    async def _is_over(self, task: str, fence: Fence) -> bool:
        """Whether the ledger has this run as over already."""
        assert self._record is not None
        try:
            known = await self._record.current(task)
        except NotFound:
            return True
        return known.ended or fence_of(known.run) != fence

    async def settle(self, worker: str, ended: say.EndedMessage) -> None:
        """For a run that is not followed here: it was given up, or is of an earlier attempt. Its output is
        fetched all the same, before the worker forgets it."""
        assert self._ledger is not None
        assert self._record is not None
        try:
            task = await self._record.current(ended.task)
        except NotFound:
            self._tell(worker, say.HeardMessage(nonce=ended.nonce))
            return
        is_same = fence_of(task.run) == ended.fence
        if (is_same and not task.ended) or ended.nonce in self._copying:
            return  # it is being recorded, or will be followed in a moment
        if is_same:
            await self._fetch(task, ended)
            self._counts["late_endings"] += 1
            await self._ledger.keep_late(task.id, ended.fence, from_wire(ended.report))
        self._tell(worker, say.HeardMessage(nonce=ended.nonce))

    async def refuse_event(self, worker: str, said: say.NotifiedMessage) -> None:
        """An event of a run that is not followed here: if that is over, its work need not wait for an
        answer. Otherwise it will be followed in a moment."""
        if await self._is_over(said.task, said.fence):
            over = Refused("This run was given up, so it tells nothing more.", code="cannot_notify")
            error = wire_errors.to_wire(over)
            self._tell(worker, say.NotedMessage(nonce=said.nonce, number=said.number, error=error))

    async def _fetch(self, task: Task, ended: say.EndedMessage) -> None:
        claim, files = task.run.claim, self.files.get(task.work.kind)
        if claim is None or files is None or claim.nonce != ended.nonce:
            return
        self._copying.add(ended.nonce)
        try:
            await copy_files(self._requests, claim, ended, files(task), self._patience)
        finally:
            self._copying.discard(ended.nonce)

    async def stop_stray(self, stray: StopStray) -> None:
        """A run that is `lost` may go on: its late result is kept. One that was to be stopped may not."""
        assert self._record is not None
        with suppress(NotFound):
            task = await self._record.current(stray.task)
            claim = task.run.claim
            is_the_run = claim is not None and (claim.worker, claim.nonce) == (stray.worker, stray.nonce)
            if is_the_run and task.status in (Status.CANCELLED, Status.TIMED_OUT):
                self._tell(stray.worker, say.CancelMessage(nonce=stray.nonce, times=stray.times))
