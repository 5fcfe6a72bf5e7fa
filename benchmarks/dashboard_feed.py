"""CPU of a server per page and update: patches of rows beside bare server-sent events of the same bytes.

    make bench NAMES=dashboard_feed

The bare server is Starlette and uvicorn with one queue a client: each update is encoded once and put into
every queue, and nothing is looked up. Both have the same clients, and as many updates at the same pace.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from meantime import Call, Context, Meantime, current

from .measure import UNLIMITED, folder, table, us, verdict

CLIENTS = (1, 12, 48)
ROUNDS = 3
RUNNING = 50  # tasks that report progress
SECONDS = 4.0
PACE = 0.1  # seconds between two updates, as the feed sends them
PATH = "/v1/events?format=patches"
TARGET = 1.5


class Page:
    """Reads a stream, and counts its events."""

    def __init__(self) -> None:
        self.bytes = 0
        self.patches = 0

    async def read(self, port: int, path: str, begun: asyncio.Event) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        try:
            while data := await reader.read(1 << 16):
                begun.set()
                self.bytes += len(data)
                self.patches += data.count(b"event: patch")
        finally:
            writer.transport.abort()


@asynccontextmanager
async def pages(count: int, port: int, path: str) -> AsyncIterator[list[Page]]:
    found = [Page() for _ in range(count)]
    begun = [asyncio.Event() for _ in found]
    reading = [
        asyncio.create_task(one.read(port, path, event)) for one, event in zip(found, begun, strict=True)
    ]
    try:
        async with asyncio.timeout(30):
            await asyncio.gather(*(event.wait() for event in begun))
        yield found
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


async def used(work: Callable[[], Awaitable[None]]) -> float:
    """CPU seconds of this process: server and clients, which are the same on both sides."""
    began = time.process_time()
    await work()
    return time.process_time() - began


async def ours(count: int) -> tuple[float, float, Page]:
    """CPU without any page, and with so many; the work itself costs the same in both."""
    with folder() as place:
        async with Meantime.open(place / "work.db", settings=UNLIMITED) as mt:
            contexts: list[Context] = []

            async def work() -> None:
                contexts.append(current())
                await asyncio.Event().wait()

            for _ in range(RUNNING):
                await mt.thread("bench").start(Call(work))

            async def updates() -> None:
                until = time.perf_counter() + SECONDS
                percent = 0
                while time.perf_counter() < until:
                    percent = (percent + 1) % 100
                    for context in contexts:
                        context.progress(percent, f"step {percent}")
                    await asyncio.sleep(PACE)

            async with mt.serve(port=0) as door:
                alone = await used(updates)
                async with pages(count, door.port, PATH) as found:
                    watched = await used(updates)
            return alone, watched, found[0]


async def bare(count: int, sizes: list[int]) -> float:
    """CPU of sending events of these sizes to so many clients, at the same pace."""
    queues: set[asyncio.Queue[bytes]] = set()

    async def stream(request: Request) -> StreamingResponse:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        queues.add(queue)

        async def parts() -> AsyncIterator[bytes]:
            yield b"event: snapshot\ndata: {}\n\n"
            while True:
                yield await queue.get()

        return StreamingResponse(parts(), media_type="text/event-stream")

    config = uvicorn.Config(
        Starlette(routes=[Route("/", stream)]), port=0, log_level="critical", lifespan="off"
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(30):
        while not server.started:  # noqa: ASYNC110  uvicorn has no event for it
            await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    async def updates() -> None:
        for size in sizes:
            rows = [{"row": "x" * 800}] * max(1, size // 812)
            event = b"event: patch\ndata: %s\n\n" % json.dumps(rows).encode()
            for queue in queues:
                queue.put_nowait(event)
            await asyncio.sleep(PACE)

    try:
        async with pages(count, port, "/"):
            return await used(updates)
    finally:
        server.should_exit = server.force_exit = True
        await serving


async def run() -> None:
    best: dict[int, tuple[float, float]] = {}  # per patch, in seconds: ours and bare
    size = 0
    for _ in range(ROUNDS):
        for count in CLIENTS:
            alone, watched, page = await ours(count)
            patches = max(1, page.patches)
            size = page.bytes // patches
            plain = await bare(count, [size] * patches)
            found = ((watched - alone) / patches, plain / patches)
            known = best.get(count, found)
            best[count] = (min(known[0], found[0]), min(known[1], found[1]))
    rows = [[f"{count}", us(own), us(base), f"{own / base:.2f}"] for count, (own, base) in best.items()]
    title = f"CPU of one patch of {size:,} bytes to all pages, beyond the work itself; best of {ROUNDS}"
    table(title, ["pages", "ours", "bare", "ratio"], rows)
    few, many = CLIENTS[0], CLIENTS[-1]
    own, base = (best[many][side] - best[few][side] for side in (0, 1))
    ratio = own / max(1e-9, base)
    each = f"{us(own / (many - few))}, bare {us(base / (many - few))}"
    print(f"Each further page costs {each} a patch: {ratio:.2f}, {verdict(ratio, TARGET)}")
