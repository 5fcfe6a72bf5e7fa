"""Memory: of a running function, of an active conversation, of an idle daemon, and over many tasks.

`make bench NAMES=memory MOST=1000000` looks for growth over so many tasks.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from meantime import Call, Meantime
from meantime.thread import Thread

from .loading import Line
from .measure import RATIOS, TABLES, UNLIMITED, Ratio, folder, ratio, table, verdict
from .serving import daemon

TASKS = 10_000
CONVERSATIONS = 2_000
AT_ONCE = 100
GROWTH = int(os.environ.get("MOST") or 20_000)  # tasks, after a tenth of them
FUNCTION_TARGET, CONVERSATION_TARGET = 2.0, 6.0  # KB
IDLE_TARGET, GROWTH_TARGET = 1.3, 1.05
BARE_SERVER = """
import sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def answer(request):
    return Response(b"{}", media_type="application/json")

uvicorn.run(Starlette(routes=[Route("/", answer)]), uds=sys.argv[1], loop="asyncio", ws="none",
            lifespan="off", log_level="error")
"""


async def run() -> None:
    bare, ours, conversation = await _running()
    above = (ours - bare) / 1024
    rows = [
        ["a task of asyncio that waits", f"{bare / 1024:.2f} KB", ""],
        ["a running function, above that", f"{above:.2f} KB", verdict(above, FUNCTION_TARGET)],
        [
            "an active conversation: one function runs, its ending is waited for",
            f"{conversation / 1024:.2f} KB",
            verdict(conversation / 1024, CONVERSATION_TARGET),
        ],
    ]
    table("Memory of each", ["", "", "target (KB)"], rows)
    server, idle = await asyncio.to_thread(_servers)
    rows = [
        ["a bare Starlette app on uvicorn, after one request", f"{server:.1f} MB", ""],
        ["an idle daemon, after one request", f"{idle:.1f} MB", verdict(idle / server, IDLE_TARGET)],
    ]
    table(f"Resident memory of servers: {ratio(idle, server)}", ["", "", "target (ratio)"], rows)
    before, after = await _growth()
    table(
        f"Resident memory over {GROWTH:,} tasks, started, run, told and acknowledged",
        ["before", "after", "each", "target (ratio)"],
        [
            [
                f"{before / 1e6:.1f} MB",
                f"{after / 1e6:.1f} MB",
                f"{(after - before) / GROWTH:.1f} bytes",
                verdict(after / before, GROWTH_TARGET),
            ]
        ],
    )
    RATIOS["memory/a running function, of a task of asyncio"] = Ratio(ours / bare)
    RATIOS["memory/an active conversation, of a task of asyncio"] = Ratio(conversation / bare)
    RATIOS["memory/an idle daemon, of a bare server"] = Ratio(idle / server)
    RATIOS["memory/after many tasks, of before"] = Ratio(after / before)
    TABLES["memory"] = [
        {"name": "running function, above a task of asyncio", "bytes": ours - bare},
        {"name": "active conversation", "bytes": conversation},
        {"name": "bare server on uvicorn", "bytes": server * 1e6},
        {"name": "idle daemon", "bytes": idle * 1e6},
        {"name": f"growth of the owner over {GROWTH:,} tasks", "bytes": after - before},
    ]


# -- what runs


async def _running() -> tuple[float, float, float]:
    """Bytes of a bare task, of a function of ours, and of a conversation that waits for one."""
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()

    bare = await _bare(work)
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread = mt.thread("bench")
            await asyncio.gather(*(thread.start(Call(work)) for _ in range(AT_ONCE)))  # caches are filled

            async def function(number: int) -> None:
                await thread.start(Call(work))

            ours = await _traced(function, TASKS)
            talking: list[asyncio.Task[None]] = []

            async def conversation(number: int) -> None:
                own = mt.thread(f"bench-{number}")
                await own.start(Call(work))
                talking.append(asyncio.create_task(_woken(own)))

            each = await _traced(conversation, CONVERSATIONS)
            gate.set()
            await asyncio.gather(*talking)
            while await thread.list(limit=1):
                await thread.wait(timeout=60)
    return bare, ours, each


async def _woken(thread: Thread) -> None:
    async for _ in thread.wakeups():
        async with thread.turn() as turn:
            await turn.ack()
        return


async def _bare(work: Callable[[], Awaitable[None]]) -> float:
    running: list[asyncio.Task[None]] = []

    async def one(number: int) -> None:
        running.append(asyncio.create_task(work()))  # type: ignore[arg-type]

    used = await _traced(one, TASKS)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return used


async def _traced(one: Callable[[int], Awaitable[None]], count: int) -> float:
    """Bytes that each leaves allocated."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for at in range(0, count, AT_ONCE):
        await asyncio.gather(*(one(number) for number in range(at, at + AT_ONCE)))
    await asyncio.sleep(0)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return used / count


# -- servers that do nothing


def _servers() -> tuple[float, float]:
    """MB of a bare server, and of a daemon. Each has answered a request: what the first one loads stays."""
    with tempfile.TemporaryDirectory(prefix="meantime-") as place:
        socket = Path(place, "bare.sock")
        server = subprocess.Popen([sys.executable, "-c", BARE_SERVER, str(socket)])
        try:
            _ask(socket, "/")
            bare = _resident(server.pid)
        finally:
            server.terminate()
            server.wait(60)
    with daemon() as ours:
        _ask(ours.home.http_socket, "/v1/tasks")
        return bare / 1e6, _resident(ours.process.pid) / 1e6


def _ask(socket: Path, path: str) -> None:
    until = time.monotonic() + 60
    while True:
        line = Line(str(socket))
        with suppress(OSError):
            line.get(path)
            return
        line.close()
        assert time.monotonic() < until, f"{socket} does not answer"
        time.sleep(0.05)


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


# -- over many tasks


async def _growth() -> tuple[int, int]:
    """Bytes of this process before and after them. Both have the modules and caches of the first tasks."""
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread = mt.thread("bench")
            await _tasks(thread, max(AT_ONCE, GROWTH // 10))
            gc.collect()
            before = _resident(os.getpid())
            await _tasks(thread, GROWTH)
            gc.collect()
            return before, _resident(os.getpid())


async def _noop() -> None:
    return None


async def _tasks(thread: Thread, count: int) -> None:
    for _ in range(count // AT_ONCE):
        handles = await asyncio.gather(*(thread.start(Call(_noop)) for _ in range(AT_ONCE)))
        await thread.wait(*handles)
        async with thread.turn(limit=1_000) as turn:
            await turn.ack()
