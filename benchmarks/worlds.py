"""Ledgers that have grown in one way, and what every verb costs there. The scaling suite measures them."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from meantime import Call, Handle, Limits, Meantime, Settings, WakeBudget
from meantime.ports.store import Query

from .history import fill
from .measure import UNLIMITED

Costs = dict[str, float]  # CPU seconds of one call, by operation
Measured = AsyncGenerator[Meantime]
Verb = Callable[[], Awaitable[object]]
PROBE = "probe"  # the conversation that is measured; what has grown is elsewhere, where nothing else is said
ROUNDS = 30
REPEATS = 3
SETTLE = 0.05  # seconds
AT_ONCE = 500  # starts that wait for one commit together
ONE_SLOT = Settings(limits=Limits(per_thread=1, total=1, queued=-1), wakes=WakeBudget(rounds=-1))


async def forever() -> None:
    await asyncio.Event().wait()


async def _many(start: Callable[[int], Awaitable[object]], count: int) -> None:
    for at in range(0, count, AT_ONCE):
        await asyncio.gather(*(start(number) for number in range(at, min(count, at + AT_ONCE))))


# -- what grows


@asynccontextmanager
async def active(path: Path, size: int) -> Measured:
    """Running tasks, over a hundred conversations."""
    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        await _many(lambda at: mt.thread(f"c-{at % 100}").start(Call(forever)), size)
        yield mt


@asynccontextmanager
async def conversations(path: Path, size: int) -> Measured:
    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        await _many(lambda at: mt.thread(f"c-{at}").start(Call(forever)), size)
        yield mt


@asynccontextmanager
async def batches(path: Path, size: int) -> Measured:
    """Of one conversation, each with a running task."""
    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        await _many(lambda at: mt.thread("c").start(Call(forever), batch=f"b-{at}"), size)
        yield mt


@asynccontextmanager
async def queued(path: Path, size: int) -> Measured:
    """Tasks that wait for a slot. They survive a close, so that the next open finds them."""
    async with Meantime.open(path, settings=ONE_SLOT, durability="fast") as mt:
        await mt.thread("c").start(Call(forever))
        await _many(lambda at: mt.thread(PROBE).start(Call(forever)), size)
        yield mt


@asynccontextmanager
async def readers(path: Path, size: int) -> Measured:
    """Of the journal: a tenth of `size`."""

    async def read(mt: Meantime, after: int) -> None:
        async for _ in mt.events(after):
            pass

    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        after = await mt._runtime.last_event()
        reading = [asyncio.create_task(read(mt, after)) for _ in range(size // 10)]
        await asyncio.sleep(0)
        yield mt
        for one in reading:
            one.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


@asynccontextmanager
async def unread(path: Path, size: int) -> Measured:
    """Notices that the measured conversation has not read."""
    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        await _many(lambda at: mt.thread(PROBE).start(Call(abs, -1)), size)
        await _idle(mt)
        yield mt


@asynccontextmanager
async def history(path: Path, size: int) -> Measured:
    fill(path, size)
    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        yield mt


@asynccontextmanager
async def output(path: Path, size: int) -> Measured:
    """One result of `size` times 100 bytes in the measured conversation."""
    async with Meantime.open(path, settings=UNLIMITED, durability="fast") as mt:
        yield mt


@asynccontextmanager
async def clients(path: Path, size: int) -> Measured:
    """Processes that are connected by the link: one for each hundred of `size`."""
    link = path.with_name("link")
    async with AsyncExitStack() as stack:
        mt = await stack.enter_async_context(
            Meantime.open(path, settings=UNLIMITED, durability="fast", link=link)
        )
        for _ in range(max(1, size // 100)):
            await stack.enter_async_context(Meantime.connect(link))
        yield mt


GROWN = (active, conversations, batches, queued, readers, unread, history, output, clients)


async def _idle(mt: Meantime) -> None:
    while await mt.list(["queued", "running"], limit=1):  # noqa: ASYNC110  no event says it
        await asyncio.sleep(0.01)


# -- what is measured


class Meter:
    """CPU time of this process, all its threads together: a busy machine matters little."""

    def __init__(self) -> None:
        self.costs: Costs = {}

    async def take(self, name: str, verb: Verb, rounds: int, parts: int = 1) -> None:
        """The least of what was measured counts: the rest is the machine's."""
        await asyncio.sleep(SETTLE)  # what an earlier verb has left to do is not counted here
        began = time.process_time()
        for _ in range(rounds):
            await verb()
        self.keep(name, (time.process_time() - began) / rounds / parts)

    def keep(self, name: str, cost: float) -> None:
        self.costs[name] = min(cost, self.costs.get(name, cost))


async def measured(grown: Callable[[Path, int], object], path: Path, size: int) -> Costs:
    """The cost of each operation in a ledger that has grown to `size`."""
    meter = Meter()
    world = grown(path, size)
    mt: Meantime = await world.__aenter__()  # type: ignore[attr-defined]
    try:
        gc.collect()
        gc.freeze()  # what has grown is looked at by no collection: its cost is not that of a verb
        for _ in range(REPEATS):
            await _verbs(meter, mt, size * 100 if grown is output else 0)
        if grown is queued:
            await meter.take("cancel-all", lambda: mt.thread(PROBE).cancel_all(), 1)
        began = time.process_time()
    finally:
        await world.__aexit__(None, None, None)  # type: ignore[attr-defined]
    meter.costs["close"] = time.process_time() - began
    settings = ONE_SLOT if grown is queued else UNLIMITED
    began = time.process_time()
    mt = await Meantime.open(path, settings=settings, durability="fast")
    meter.costs["open"] = time.process_time() - began
    await mt.close()
    gc.unfreeze()
    return meter.costs


async def _verbs(meter: Meter, mt: Meantime, size: int) -> None:
    thread, gate = mt.thread(PROBE), asyncio.Event()
    handles: list[Handle] = []

    async def work() -> str:
        await gate.wait()
        return "x" * size

    async def start() -> None:
        handles.append(await thread.start(Call(work)))

    async def end() -> None:
        gate.set()
        await thread.wait(*handles)

    rounds = 3 if size else ROUNDS
    await meter.take("start", start, rounds)
    if mt.limits().total == -1:  # otherwise it waits for a slot, and does not end
        await meter.take("end", end, 1, rounds)
        await _turns(meter, mt)
        await meter.take("cancel-all", lambda: _cancelled(mt), 3, 10)
    await meter.take("list", lambda: mt.list(limit=50), ROUNDS)
    await meter.take("rows", lambda: _first_rows(mt), ROUNDS)
    await meter.take("overview", lambda: mt._runtime.overview(None), ROUNDS)
    await meter.take("search", lambda: mt._runtime.page(Query(search="needle"), counted=False), 3)
    await meter.take("reminder", lambda: thread.reminder(), ROUNDS)


async def _first_rows(mt: Meantime) -> None:
    """The first page of a list in a browser, counted as far as a page counts."""
    page = await mt._runtime.page(Query(limit=50), most=10_000)
    await mt._runtime.row_facts([task.id for task in page.tasks])


async def _turns(meter: Meter, mt: Meantime) -> None:
    """Each takes at most three notices, so that every turn has some."""
    turning = acking = 0.0
    await asyncio.sleep(SETTLE)
    for _ in range(3):
        began = time.process_time()
        async with mt.thread(PROBE).turn(limit=3) as turn:
            taken = time.process_time()
            await turn.ack()
            acked = time.process_time()
        turning += taken - began
        acking += acked - taken
    meter.keep("turn", turning / 3)
    meter.keep("ack", acking / 3)


async def _cancelled(mt: Meantime) -> None:
    thread = mt.thread("probe-of-cancels")
    await asyncio.gather(*(thread.start(Call(forever)) for _ in range(10)))
    await thread.cancel_all()
    await thread.wait(*await thread.list())
