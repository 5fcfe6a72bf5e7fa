"""The processes that use a daemon while it is measured: `python -m benchmarks.loading <part> …`. Each prints
one line of JSON when it is done."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from meantime import Call, Meantime

PATHS = ("/v1/tasks?limit=50", "/v1/tasks/{id}", "/v1/health")
ENDED, RESYNC = b"event: task.completed\n", b"event: resync\n"
PACE = 0.01  # seconds between two handfuls of starts
PAUSE = 0.004  # seconds between two reads


async def noop() -> None:
    return None


# -- hands work off, and is told of all of it


async def starter(link: str, rate: float, seconds: float) -> dict[str, Any]:
    """`rate` per second; 0 is as fast as a hundred at once can."""
    async with Meantime.connect(link, start=False) as mt:
        thread = mt.thread("bench")
        told: list[str] = []
        started: list[str] = []
        took: list[float] = []
        over = asyncio.Event()

        async def conversation() -> None:
            async for _ in thread.wakeups():
                async with thread.turn(limit=1_000) as turn:
                    told.extend(notice.id for notice in turn.notices)
                    await turn.ack()
                if over.is_set() and len(told) >= len(started):
                    return

        async def start() -> None:
            began = time.perf_counter()
            handle = await thread.start(Call(noop))
            took.append(time.perf_counter() - began)
            started.append(handle.id)

        talking = asyncio.create_task(conversation())
        began = time.perf_counter()
        if rate:
            await _paced(start, rate, seconds)
        else:
            await _freely(start, seconds)
        handed_off = time.perf_counter() - began
        await start()  # the last: its notice ends the conversation
        over.set()
        await asyncio.wait_for(talking, 120)
        return {
            "started": len(started),
            "told": len(told),
            "unique": len(set(told)),
            "seconds": handed_off,
            "all_told": time.perf_counter() - began,
            "took": spread(took),
        }


async def _paced(start: Any, rate: float, seconds: float) -> None:
    running: set[asyncio.Task[None]] = set()
    began, count = time.perf_counter(), 0
    while (now := time.perf_counter() - began) < seconds:
        while count < now * rate:
            task = asyncio.create_task(start())
            running.add(task)
            task.add_done_callback(running.discard)
            count += 1
        await asyncio.sleep(PACE)
    await asyncio.gather(*running)


async def _freely(start: Any, seconds: float) -> None:
    end = time.perf_counter() + seconds

    async def one() -> None:
        while time.perf_counter() < end:
            await start()

    await asyncio.gather(*(one() for _ in range(100)))


# -- follows the events, on many connections


def followers(path: str, count: int, reads: bool) -> dict[str, Any]:
    """Until SIGTERM, and until nothing more comes. Without `reads` they never take anything."""
    open_ones = [_stream(path) for _ in range(count)]
    print("ready", flush=True)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))
    if not reads:
        signal.pause()
        return {"clients": count}
    chosen = selectors.DefaultSelector()
    ended, resyncs, size = [0] * count, [0] * count, 0
    rest = [b""] * count
    buffer = bytearray(1 << 18)
    for number, one in enumerate(open_ones):
        one.setblocking(False)
        chosen.register(one, selectors.EVENT_READ, number)
    alive = count
    while alive and ((news := chosen.select(0.5)) or not stopped):
        for key, _ in news:
            with suppress(BlockingIOError):
                got = key.fileobj.recv_into(buffer)  # type: ignore[union-attr]
                size += got
                if not got:
                    chosen.unregister(key.fileobj)
                    alive -= 1
                piece = rest[key.data] + bytes(buffer[:got])
                ended[key.data] += piece.count(ENDED)
                resyncs[key.data] += piece.count(RESYNC) - rest[key.data].count(RESYNC)
                rest[key.data] = piece[1 - len(ENDED) :]  # the longer word may have been cut in two
    return {"clients": count, "alive": alive, "ended": min(ended), "resyncs": sum(resyncs), "bytes": size}


def _stream(path: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX)
    one.connect(path)
    one.sendall(b"GET /v1/events?snapshot=bounded HTTP/1.1\r\nHost: meantime\r\n\r\n")
    return one


# -- reads, of the daemon and of a bare app in turn


class Line(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("meantime", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self._path)

    def get(self, path: str) -> bytes:
        self.request("GET", path)
        answer = self.getresponse()
        body = answer.read()
        assert answer.status == 200, body[:500]
        return body

    def post(self, path: str, body: bytes) -> bytes:
        """On one connection, as a client that keeps it."""
        self.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self.getresponse()
        body = answer.read()
        assert answer.status == 201, body[:500]
        return body


def reader(places: dict[str, str], id: str, seconds: float) -> dict[str, Any]:
    lines = {name: Line(place) for name, place in places.items()}
    took: dict[str, list[float]] = {f"{name} {path}": [] for name in places for path in PATHS}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for path in PATHS:
            for name, line in lines.items():
                began = time.perf_counter()
                line.get(path.format(id=id))
                took[f"{name} {path}"].append(time.perf_counter() - began)
                time.sleep(PAUSE)
    return {name: spread(times) for name, times in took.items()}


def bare(path: str, bodies: Sequence[str], id: str) -> None:
    """The same bytes on the same server, and nothing behind it."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    def answering(body: bytes) -> Any:
        async def answer(request: Any) -> Response:
            return Response(body, media_type="application/json")

        return answer

    routes = [
        Route(place.partition("?")[0].format(id=id), answering(body.encode()))
        for place, body in zip(PATHS, bodies, strict=True)
    ]
    config = uvicorn.Config(
        Starlette(routes=routes),
        uds=path,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        loop="asyncio",
    )
    uvicorn.Server(config).run()


def spread(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    if not ordered:
        return {}
    return {
        "count": len(ordered),
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[int(len(ordered) * 0.99)],
        "most": ordered[-1],
    }


def main() -> None:
    part, given = sys.argv[1], json.loads(sys.argv[2])
    if part == "starter":
        found = asyncio.run(starter(**given))
    elif part == "followers":
        found = followers(**given)
    elif part == "reader":
        found = reader(**given)
    else:
        bare(**given)
        return
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    os.environ.pop("MEANTIME_HOME", None)
    main()
