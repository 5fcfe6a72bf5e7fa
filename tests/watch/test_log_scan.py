"""The reading of one log for all of its watches, over a ledger that fails and stops at any moment.

The ledger is a fake here, as a real one cannot be made to fail between two lines of one block.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import NotFound, Refused, Watch
from meantime.kernel.event_notices import Events
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Chunk, Json, Run, Task
from meantime.ports.watch_ledger import Standing
from meantime.runners.watch.findings import Findings
from meantime.runners.watch.log_scan import LogScan, LogWatch
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


class OneLog:
    """A ledger with the output of one task, which keeps what it is told."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.failing: Exception | None = None
        self.told: list[str] = []
        self.cursor: Json = None

    async def read(self, id: str, stream: str, offset: int, most: int) -> Chunk:
        if self.failing is not None:
            raise self.failing
        data = self.data[offset : offset + most]
        return Chunk(data, offset, offset + len(data), len(self.data))

    async def wait_output(self, id: str, stream: str, seen: int) -> None:
        await asyncio.Event().wait()

    async def found(self, task: Task, events: Events, cursor: Json) -> bool:
        self.told.append(events.last)
        self.cursor = cursor
        return True

    async def save(self, task: Task, was: Json, cursor: Json) -> bool:
        if kept := self.cursor == was:
            self.cursor = cursor
        return kept

    async def standing(self, source: str, id: str) -> Standing:
        raise NotImplementedError

    def listen(self, source: str, id: str, wake: Callable[[], object]) -> Callable[[], None]:
        raise NotImplementedError


@asynccontextmanager
async def scan_of(ledger: OneLog, clock: FakeClock | None = None) -> AsyncIterator[LogScan]:
    scan = LogScan(ledger, clock or FakeClock(), "t_2", "", lambda: None)
    try:
        yield scan
    finally:
        scan.close()


def watch_of(ledger: OneLog, watch: Watch, cursor: Json = None) -> LogWatch:
    task = Task(id="t_1", thread="a", work=watch.order().work, status=Status.RUNNING, run=Run(cursor=cursor))
    return LogWatch(Findings(task, ledger, FakeClock()))


async def ending(watch: LogWatch) -> tuple[str, str]:
    async with asyncio.timeout(LIMIT):
        return await watch.over


async def test_a_watch_that_wants_lines_of_a_deleted_task_ends():
    ledger = OneLog(b"")
    ledger.failing = NotFound.task("t_2")
    async with scan_of(ledger) as scan:
        some = [watch_of(ledger, Watch(log="t_2", match="x", context=1), {"at": at}) for at in (5, 9)]
        for watch in some:
            scan.add(watch)
        assert [await ending(watch) for watch in some] == [("until its task was deleted", "")] * 2


async def test_a_line_that_ends_a_watch_is_not_lost_in_a_crash_after_its_matches_were_told():
    watched = Watch(log="t_2", match="WARN", until="^ready", context=1)
    ledger = OneLog(b"WARN 1\nready on 8080\nWARN 2\n")
    expected = ("until ^ready", "  WARN 1\n> ready on 8080\n  WARN 2")
    async with scan_of(ledger) as scan:
        watch = watch_of(ledger, watched)
        scan.add(watch)
        assert await ending(watch) == expected
        await watch.save()
    async with scan_of(ledger) as scan:  # the next owner, as the one before wrote no ending
        watch = watch_of(ledger, watched, ledger.cursor)
        scan.add(watch)
        assert await ending(watch) == expected
    assert (len(ledger.told), watch.findings.cursor.matches) == (1, 1)


@pytest.mark.parametrize("options", [{"once": True}, {"until": "ERROR"}])
async def test_the_cursor_of_a_watch_that_is_over_stays_before_its_last_line(options: dict[str, Any]):
    ledger = OneLog(b"ok\nERROR\n")
    async with scan_of(ledger) as scan:
        watch = watch_of(ledger, Watch(log="t_2", match="ERROR|nothing", **options))
        other = watch_of(ledger, Watch(log="t_2", match="nothing"))
        scan.add(watch)
        scan.add(other)
        over = await ending(watch)
        await until_async(lambda: other.at == len(ledger.data), "the scan has gone on")
        await watch.save()
    async with scan_of(ledger) as scan:
        watch = watch_of(ledger, Watch(log="t_2", match="ERROR|nothing", **options), ledger.cursor)
        scan.add(watch)
        assert await ending(watch) == over


@pytest.mark.parametrize("code", ["worker_away", "worker_unreachable"])
async def test_a_worker_that_is_away_is_waited_for_and_a_deadline_is_not_held_back(code: str):
    ledger, clock = OneLog(b"before\nold\nERROR\n"), FakeClock()
    ledger.failing = Refused("Worker w1 has been away.", code=code)
    async with scan_of(ledger, clock) as scan:
        watch, due, left = (
            watch_of(ledger, Watch(log="t_2", match="ERROR", context=1, once=True), {"at": 11})
            for _ in range(3)
        )
        for one in (watch, due, left):
            scan.add(one)
        await clock.advance(3_600)
        due.is_due = True
        left.over.cancel()
        scan.poke()
        assert await ending(due) == ("until the deadline, while its worker was away", "")
        ledger.failing = None
        await clock.advance(1)
        assert await ending(watch) == ("", "  old\n> ERROR")


async def test_a_scan_whose_watches_left_while_the_worker_was_away_is_over():
    ledger, over = OneLog(b""), asyncio.Event()
    ledger.failing = Refused("Worker w1 has been away.", code="worker_away")
    scan = LogScan(ledger, FakeClock(), "t_2", "", over.set)
    watch = watch_of(ledger, Watch(log="t_2", match="ERROR"))
    scan.add(watch)
    await asyncio.sleep(0)
    watch.over.cancel()
    scan.poke()
    async with asyncio.timeout(LIMIT):
        await over.wait()


async def test_a_deadline_comes_for_each_watch_however_much_of_a_line_the_others_have():
    ledger = OneLog(b"a line without its end")
    async with scan_of(ledger) as scan:
        scan.add(watch_of(ledger, Watch(log="t_2", match="nothing")))
        late = watch_of(ledger, Watch(log="t_2", match="nothing"), {"at": len(ledger.data)})
        scan.add(late)
        await asyncio.sleep(0)
        late.is_due = True
        scan.poke()
        assert await ending(late) == ("until the deadline", "")
