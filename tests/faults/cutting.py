"""Stands between a client and a socket, and cuts connections: also in the middle of what is being said."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.waiting import LIMIT


class Proxy:
    def __init__(self, here: Path, there: Path, seed: int) -> None:
        self._here = here
        self._there = there
        self._rng = random.Random(seed)
        self._open: set[tuple[asyncio.WriteTransport, asyncio.WriteTransport]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._do(asyncio.start_unix_server(self._connected, self._here))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._cut_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._here.unlink(missing_ok=True)

    def cut(self) -> int:
        """How many were cut: all that are open now, or one of them."""
        return self._do(self._cut_all() if self._rng.random() < 0.3 else self._cut_one())

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT)

    async def _cut_all(self) -> int:
        return sum([self._abort(pair) for pair in list(self._open)])

    async def _cut_one(self) -> int:
        return self._abort(self._rng.choice(list(self._open))) if self._open else 0

    def _abort(self, pair: tuple[asyncio.WriteTransport, asyncio.WriteTransport]) -> int:
        self._open.discard(pair)
        for transport in pair:
            transport.abort()
        return 1

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            theirs, ours = await asyncio.open_unix_connection(self._there)
        except OSError:
            writer.close()
            return
        pair = (writer.transport, ours.transport)
        self._open.add(pair)
        passing = [asyncio.create_task(_pass_on(reader, ours)), asyncio.create_task(_pass_on(theirs, writer))]
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for task in passing:
            task.cancel()
        self._open.discard(pair)
        for transport in pair:
            transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(1 << 12):
            writer.write(piece)
            await writer.drain()
    except OSError:
        return
