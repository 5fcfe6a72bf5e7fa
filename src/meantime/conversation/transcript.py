"""A conversation in our own store: messages are added, and saved together with the ack of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from inspect import isawaitable
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from meantime.conversation.handle import ref_of
from meantime.kernel.errors import InvalidInput, LeaseLost
from meantime.kernel.notices import Message, Notice, Part
from meantime.ports.store import Entry, check_entry
from meantime.ports.tasks import Tasks

T = TypeVar("T")


class Transcript:
    """A small conversation in our own store: the class A host. Add, then save or ack."""

    def __init__(self, tasks: Tasks, thread: str, kept: Transcripts | None = None) -> None:
        self._tasks = tasks
        self._thread = thread
        self._kept = kept
        self._added: list[Entry] = []
        self._writing: asyncio.Future[Any] | None = None

    def add(self, notice: str | None, message: Message | str, *, role: str = "user") -> None:
        """Adds a message; one that carries a notice id is kept once, however often it is added.

        notice: the id of the notice that it tells; None for any other message.
        message: a message, or the text of one.
        role: of a text.
        """
        if isinstance(message, str):
            message = Message(role, (Part(message),))
        self._added.append(check_entry(Entry(message, None if notice is None else ref_of(notice))))
        if self._kept is not None:
            self._kept.unsaved[self._thread] = self

    def apart(self) -> Transcript:
        """The same conversation with a buffer of its own: what is added there is saved there alone."""
        return Transcript(self._tasks, self._thread)

    async def save(self) -> None:
        """Writes what was added. `turn.ack(transcript=…)` does it together with the ack."""
        await self.saving(lambda entries: self._tasks.append(self._thread, entries))

    async def has(self, notice: Notice | str) -> bool:
        """Whether the conversation holds this notice already."""
        return await self._tasks.has_entry(self._thread, ref_of(notice))

    async def messages(self) -> list[Message]:
        """The conversation so far."""
        return [entry.message for entry in await self._tasks.transcript(self._thread)]

    async def entries(self) -> Sequence[Entry]:
        """The conversation so far, with the notice that each message carries."""
        return await self._tasks.transcript(self._thread)

    async def saving(self, write: Callable[[list[Entry]], Coroutine[Any, Any, T]]) -> T:
        """Added messages are dropped here once they are written, whether or not our caller still waits."""
        if not callable(write) or isinstance(write, type):
            raise InvalidInput(f"saving takes an async function, not {type(write).__name__}.")
        while self._writing is not None:  # for a caller who no longer waits: it must not be written twice
            await asyncio.wait([self._writing])
        entries = list(self._added)
        coming = write(entries)
        if not isawaitable(coming):  # pyright: ignore[reportUnnecessaryComparison]  it comes from outside
            raise InvalidInput(f"saving takes an async function; this one gave {type(coming).__name__}.")
        writing = self._writing = asyncio.ensure_future(coming)

        def written(done: asyncio.Future[T]) -> None:
            self._writing = None
            problem = None if done.cancelled() else done.exception()
            if not done.cancelled() and (problem is None or isinstance(problem, LeaseLost)):
                self._added = [entry for entry in self._added if not any(entry is one for one in entries)]
                if self._kept is not None and not self._added:
                    self._kept.unsaved.pop(self._thread, None)

        writing.add_done_callback(written)
        return await asyncio.shield(writing)


class Transcripts:
    """One for each thread of a Meantime, whoever asks for it: text added to a second one would not be saved
    with the first. Each is kept while somebody has it, or while something in it is not saved."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._known: WeakValueDictionary[str, Transcript] = WeakValueDictionary()
        self.unsaved: dict[str, Transcript] = {}

    def of(self, thread: str) -> Transcript:
        found = self._known.get(thread)
        if found is None:
            found = self._known[thread] = Transcript(self._tasks, thread, self)
        return found
