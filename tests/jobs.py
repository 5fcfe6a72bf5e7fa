"""The tools that the scenarios start, and the agent that is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from meantime import Call, Handle, Message, Thread


class Job:
    """A tool that runs until the test ends it, as a job of its own."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.started = asyncio.Event()
        self.asked_to_stop = asyncio.Event()
        self.executions = 0
        self._stubborn = stubborn
        self._over = asyncio.Event()
        self._result: Any = None

    def finish(self, result: Any = "done") -> None:
        self._result = result
        self._over.set()

    async def work(self) -> Any:
        self.executions += 1
        self.started.set()
        try:
            await self._over.wait()
        except asyncio.CancelledError:
            self.asked_to_stop.set()
            if not self._stubborn:
                raise
            await self._over.wait()
        if isinstance(self._result, Exception):
            raise self._result
        return self._result

    @property
    def call(self) -> Call:
        return Call(self.work)


class Deaf(Job):
    """Ignores every request to stop; `asked` counts them. Finish it, or the loop cannot close."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def work(self) -> Any:
        self.started.set()
        while not self._over.is_set():
            try:
                await self._over.wait()
            except asyncio.CancelledError:
                self.asked += 1
        return self._result


async def start(thread: Thread, **options: Any) -> tuple[Job, Handle]:
    """A job that really runs."""
    job = Job(stubborn=options.pop("stubborn", False))
    handle = await thread.start(job.call, **options)
    await job.started.wait()
    return job, handle


async def finished(thread: Thread, result: Any = "done", **options: Any) -> Handle:
    job, handle = await start(thread, **options)
    job.finish(result)
    await handle.wait()
    return handle


async def take_turn(thread: Thread) -> Sequence[str]:
    """What an agent does at a turn boundary; returns the ids of the jobs that it was told about."""
    transcript = thread.transcript
    async with thread.turn() as turn:
        for notice in turn.notices:
            transcript.add(notice.id, notice.message())
        await turn.ack(transcript=transcript)
    return [notice.task_id for notice in turn.notices]


async def messages(thread: Thread) -> list[Message]:
    return await thread.transcript.messages()
