"""The ledger as a watch needs it: the state of other tasks, and a place for what it finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from meantime.kernel.event_notices import Events
from meantime.kernel.model import Chunk, Json, Task


class Standing(NamedTuple):
    """A task, a thread or a batch, as it is now."""

    text: str
    ended: bool = False  # it will not change any more


class FolderLooker(Protocol):
    """The runner of watches, as the start of one needs it."""

    async def is_folder(self, path: str) -> bool:
        """Asked beside the event loop. Raises Refused where its file system does not answer."""
        ...


class WatchLedger(Protocol):
    async def read(self, id: str, stream: str, offset: int, most: int) -> Chunk:
        """The output of a task. Raises NotFound once the task was deleted."""
        ...

    async def wait_output(self, id: str, stream: str, seen: int) -> None:
        """Returns when there may be more than `seen` bytes, or when the task has ended."""
        ...

    async def standing(self, source: str, id: str) -> Standing:
        """`source` is task, thread or batch. Raises NotFound for a task that was deleted."""
        ...

    def listen(self, source: str, id: str, wake: Callable[[], object]) -> Callable[[], None]:
        """Calls `wake` whenever something about it was written; the answer ends that."""
        ...

    async def found(self, task: Task, events: Events, cursor: Json) -> bool:
        """Tells the watch's thread, and keeps its cursor, in one transaction. False: the run is over, and
        nothing was written."""
        ...

    async def save(self, task: Task, was: Json, cursor: Json) -> bool:
        """Keeps the cursor alone, if it is still as it was: something may be told meanwhile, and that cursor
        must stay. A power cut may lose it; then it is looked again from the one before."""
        ...
