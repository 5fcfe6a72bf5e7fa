"""Threads that clients have created, with their metadata. Each is a transcript in the ledger under a name of
its own, so that it survives a crash before its first run."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.ids import check_id
from meantime.kernel.notices import Message, Part
from meantime.kernel.work import check_meta
from meantime.ports.store import Entry
from meantime.ports.tasks import Tasks

PREFIX = "agent-protocol:"
ROLE = "agent-protocol"
MOST_CHANGES = 200  # of one thread's metadata: each is kept, and all are read
LONGEST = 128 - len(PREFIX)


class ThreadRecord(Struct, frozen=True, omit_defaults=True):
    at: float
    metadata: dict[str, Any] = {}
    deleted: bool = False


class ThreadTimes(Struct, frozen=True):
    created_at: float
    updated_at: float
    metadata: dict[str, Any]


class ThreadRecords:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    async def find(self, thread: str) -> ThreadTimes | None:
        """None for a thread that was not created, or was deleted since."""
        records = await self._all(thread)
        ends = [place for place, one in enumerate(records) if one.deleted]
        records = records[ends[-1] + 1 :] if ends else records
        if not records:
            return None
        return ThreadTimes(records[0].at, records[-1].at, records[-1].metadata)

    async def put(self, thread: str, metadata: dict[str, Any]) -> None:
        await self._append(thread, ThreadRecord(self._tasks.now(), check_meta(metadata, "metadata")))

    async def delete(self, thread: str) -> None:
        await self._append(thread, ThreadRecord(self._tasks.now(), deleted=True))

    async def _append(self, thread: str, record: ThreadRecord) -> None:
        if len(await self._all(thread)) >= MOST_CHANGES:
            text = f"The thread {thread} was changed {MOST_CHANGES} times, which is the most."
            raise Refused(text, code="too_many_changes", hint="Create another thread.")
        part = Part(msgspec.json.encode(record).decode())
        await self._tasks.append(PREFIX + thread, [Entry(Message(ROLE, (part,)))])

    async def _all(self, thread: str) -> list[ThreadRecord]:
        if len(thread) > LONGEST:
            return []
        entries = await self._tasks.transcript(PREFIX + thread)
        return [msgspec.json.decode(one.message.text, type=ThreadRecord) for one in entries]


def check_thread(id: str) -> str:
    if len(id) > LONGEST:
        raise InvalidInput(f"thread_id is longer than {LONGEST} characters.", hint="Choose a shorter one.")
    return check_id(id, "thread_id")


def matches(metadata: dict[str, Any], wanted: dict[str, Any] | None) -> bool:
    """Whether all that is wanted is in it, at any depth."""
    return all(name in metadata and _fits(metadata[name], value) for name, value in (wanted or {}).items())


def _fits(value: object, wanted: object) -> bool:
    if isinstance(value, dict) and isinstance(wanted, dict):
        return matches(cast("dict[str, Any]", value), cast("dict[str, Any]", wanted))
    return value == wanted
