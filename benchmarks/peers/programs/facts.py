"""The part that the programs of all peers share: the work, and the commands of the benchmark over stdin and
stdout. They run in environments of their own, so they import nothing of ours.

The work returns the moment of its end by the machine's clock, so the time until its result is known can be
told. Work that takes long also writes into a file outside when it began, ended or was cancelled.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

FACTS = os.environ.get("QUEUE_FACTS", "")
LINE = 2**22  # bytes of a command: it may have thousands of ids
AT_ONCE = 100  # tasks that are submitted together
TOLD_WITHIN = 30.0  # seconds for all endings after a crash, when everything has had its time already
_numbers = count()


def _new() -> str:
    """Of a name that no client had before, even before a crash."""
    return f"{os.getpid()}-{next(_numbers)}"


def say(what: str, id: str) -> None:
    fd = os.open(FACTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{time.time():.4f} {what} {id}\n".encode())
    os.close(fd)


async def waited(id: str, seconds: float) -> float:
    if seconds:
        say("began", id)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        say("cancelled", id)
        raise
    if seconds:
        say("ended", id)
    return time.monotonic()


def slept(id: str, seconds: float) -> float:
    """The same for peers whose work is a plain function."""
    if seconds:
        say("began", id)
        time.sleep(seconds)
        say("ended", id)
    return time.monotonic()


class Commands:
    """submit(id, seconds) returns when the task is accepted; result(id) when its result is known."""

    def __init__(
        self,
        submit: Callable[[str, float], Awaitable[Any]],
        result: Callable[[str], Awaitable[Any]],
        cancel: Callable[[str], Awaitable[Any]] | None = None,
    ) -> None:
        self._submit, self._result, self._cancel = submit, result, cancel

    async def start(self, ids: list[str], seconds: float) -> dict[str, Any]:
        for at in range(0, len(ids), AT_ONCE):
            await asyncio.gather(*(self._submit(id, seconds) for id in ids[at : at + AT_ONCE]))
        return {}

    async def noops(self, count: int) -> dict[str, Any]:
        """All at once, until every result is known."""
        ids = [f"noop-{_new()}" for _ in range(count)]
        await self.start(ids, 0.0)
        for id in ids:
            await self._result(id)
        return {}

    async def one_by_one(self, count: int) -> dict[str, Any]:
        """Seconds of each submit, and from the end of each task until its result is known."""
        submits: list[float] = []
        tellings: list[float] = []
        for _ in range(count):
            id, began = f"one-{_new()}", time.monotonic()
            await self._submit(id, 0.0)
            submits.append(time.monotonic() - began)
            ended = await self._result(id)
            tellings.append(time.monotonic() - ended)
        return {"submits": submits, "tellings": tellings}

    async def told(self, ids: list[str]) -> dict[str, Any]:
        """The ending of each task, as far as it is known now. An error is an ending as well."""
        known = {id: asyncio.ensure_future(self._result(id)) for id in ids}
        await asyncio.wait(known.values(), timeout=TOLD_WITHIN)
        return {id: _words(found) for id, found in known.items() if found.done()}

    async def cancel(self, id: str) -> dict[str, Any]:
        assert self._cancel is not None
        await self._cancel(id)
        return {}

    async def serve(self) -> None:
        """Commands as JSON lines on stdin, each answered by a line on stdout."""
        reader = asyncio.StreamReader(limit=LINE)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        print("ready", flush=True)
        while line := await reader.readline():
            given = json.loads(line)
            try:
                answer = await getattr(self, given.pop("do"))(**given)
            except Exception as problem:
                answer = {"problem": f"{type(problem).__name__}: {problem}"}
            print(json.dumps(answer), flush=True)


def _words(found: asyncio.Future[Any]) -> str:
    problem = found.exception()
    return f"{type(problem).__name__}: {problem}"[:200] if problem else "a result"
