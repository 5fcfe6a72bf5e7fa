"""The carrier in memory between processes: one process has the broker with its injected faults, and the ends
of the others speak to it over TCP.

    python -m tests.faults.workers.memory_carrier <folder> <port> <seed> <delay>
"""

from __future__ import annotations

import asyncio
import struct
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from meantime.app.system_clock import SystemClock
from meantime.carriers.ends.callback_guard import call_back
from meantime.carriers.ends.carrier_end import CarrierEnd
from meantime.carriers.memory import MemoryBroker, MessageFaults
from meantime.carriers.memory.memory_ends import MemoryWorker
from meantime.ports.carrier import FromOwner, FromWorker, Offered, StateChanged

from .. import works

ACK_WAIT = 4.0
ANSWER_WAIT = 5.0
OWNER = "owner"


def framed(*words: object) -> bytes:
    data = msgspec.msgpack.encode(words)
    return struct.pack(">I", len(data)) + data


async def next_frame(reader: asyncio.StreamReader) -> list[Any]:
    (size,) = struct.unpack(">I", await reader.readexactly(4))
    return msgspec.msgpack.decode(await reader.readexactly(size))


# -- the server


class MemoryServer:
    def __init__(self, seed: int, delay: float) -> None:
        self._broker = MemoryBroker(SystemClock(), MessageFaults(delay=delay), seed=seed, ack_wait=ACK_WAIT)
        self._owner: asyncio.StreamWriter | None = None
        self._pulled: set[str] = set()  # keys of offers that some worker was shown

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (name,) = await next_frame(reader)
            await (self._serve_owner if name == OWNER else self._serve_worker)(name, reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    async def _serve_owner(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._owner is not None:  # what an earlier one has still under way must not come after this one
            self._owner.transport.abort()
        self._owner = writer
        end = self._broker.owner()
        offered: set[str] = set()  # by this connection
        await end.open(lambda worker, data: writer.write(framed("said", worker, data)), lambda state: None)
        try:
            while self._owner is writer:
                verb, *given = await next_frame(reader)
                if verb == "is_empty":
                    writer.write(framed("answer", given[0], await end.is_empty(given[1])))
                elif verb == "add_pool":
                    await end.add_pool(given[0])
                else:
                    if verb == "offer":
                        self._check(offered, *given[:2])
                    getattr(end, verb)(*given)
        finally:
            await end.close()

    def _check(self, offered: set[str], pool: str, key: str) -> None:
        """An offer is repeated only when the queue was empty: not one that waits there for a worker."""
        queue = self._broker._queues.get(pool)
        waiting = queue._waiting.values() if queue is not None else ()
        if key in offered and key not in self._pulled and any(one.key == key for one in waiting):
            works.say("offered while queued", "", key)
        offered.add(key)

    async def _serve_worker(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        end = self._broker.worker(name)
        await end.open(lambda data: writer.write(framed("said", data)), lambda state: None)
        pulls: set[asyncio.Task[None]] = set()
        try:
            while True:
                verb, *given = await next_frame(reader)
                if verb == "pull":
                    pulls.add(asyncio.create_task(self._pull(end, writer, *given)))
                    pulls = {task for task in pulls if not task.done()}
                elif verb == "to_owner":
                    end.to_owner(*given)
                else:
                    getattr(end, verb)(msgspec.convert(given[0], Offered))
        finally:
            for task in pulls:
                task.cancel()
            await end.close()

    async def _pull(
        self, end: MemoryWorker, writer: asyncio.StreamWriter, ask: int, pool: str, free: int, wait: float
    ) -> None:
        found = await end.pull(pool, free, wait)
        self._pulled |= {offered.key for offered in found}
        writer.write(framed("answer", ask, found))


async def _serve(port: int, server: MemoryServer) -> None:
    async with await asyncio.start_server(server.serve, "127.0.0.1", port) as listening:
        await listening.serve_forever()


# -- the ends


class _MemoryEnd(CarrierEnd[bytes]):
    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        parts = urlsplit(url)
        self._host, self._port, self._name = parts.hostname, parts.port, name
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._count = 0

    async def _connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        self._writer.write(framed(self._name))

    async def _until_lost(self) -> str:
        assert self._reader is not None
        while True:
            try:
                verb, *given = await next_frame(self._reader)
            except (asyncio.IncompleteReadError, OSError):
                return "The broker is gone."
            if verb == "answer":
                answer = self._asked.pop(given[0], None)
                if answer is not None and not answer.done():
                    answer.set_result(given[1])
            else:
                self._said(*given)

    def _said(self, *given: Any) -> None:
        raise NotImplementedError

    async def _write(self, batch: list[bytes]) -> None:
        assert self._writer is not None
        self._writer.write(b"".join(batch))
        await self._writer.drain()

    async def _disconnect(self) -> None:
        for answer in self._asked.values():
            answer.cancel()
        self._asked.clear()
        if self._writer is not None:
            self._writer.transport.abort()

    async def _ask(self, wait: float, verb: str, *given: object) -> Any:
        """None where no answer comes."""
        self._count += 1
        answer = self._asked[self._count] = asyncio.get_running_loop().create_future()
        try:
            if not self._tell(verb, self._count, *given):
                return None
            await asyncio.wait([answer], timeout=wait)
            return answer.result() if answer.done() and not answer.cancelled() else None
        finally:
            self._asked.pop(self._count, None)

    def _tell(self, verb: str, *given: object) -> bool:
        frame = framed(verb, *given)
        return self._send(frame, len(frame))


class SocketOwner(_MemoryEnd):
    def __init__(self, url: str) -> None:
        super().__init__(url, OWNER)
        self._receive: FromWorker | None = None
        self._pools: set[str] = set()

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        self._receive = receive
        await self._open(changed)

    def _said(self, *given: Any) -> None:
        if self._receive is not None:
            call_back(self._receive, *given)

    async def add_pool(self, pool: str) -> None:
        self._pools.add(pool)
        self._tell("add_pool", pool)

    def offer(self, pool: str, key: str, data: bytes) -> bool:
        return self._tell("offer", pool, key, data)

    def withdraw(self, pool: str, key: str) -> None:
        self._tell("withdraw", pool, key)

    async def is_empty(self, pool: str) -> bool:
        return bool(await self._ask(ANSWER_WAIT, "is_empty", pool))

    def to_worker(self, worker: str, data: bytes) -> bool:
        return self._tell("to_worker", worker, data)


class SocketWorker(_MemoryEnd):
    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name)
        self._receive: FromOwner | None = None

    @property
    def worker(self) -> str:
        return self._name

    async def open(self, receive: FromOwner, changed: StateChanged) -> None:
        self._receive = receive
        await self._open(changed)

    def _said(self, *given: Any) -> None:
        if self._receive is not None:
            call_back(self._receive, *given)

    async def pull(self, pool: str, free: int, wait: float) -> list[Offered]:
        if not await self.until_up(wait):
            return []
        found = await self._ask(wait + ANSWER_WAIT, "pull", pool, free, wait)
        return msgspec.convert(found or [], list[Offered])

    def acknowledge(self, offered: Offered) -> None:
        self._tell("acknowledge", offered)

    def release(self, offered: Offered) -> None:
        self._tell("release", offered)

    def to_owner(self, data: bytes) -> bool:
        return self._tell("to_owner", data)


if __name__ == "__main__":
    _, place, port, seed, delay = sys.argv
    works.SYNCED = False
    works.open_ledger(Path(place))
    asyncio.run(_serve(int(port), MemoryServer(int(seed), float(delay))))
