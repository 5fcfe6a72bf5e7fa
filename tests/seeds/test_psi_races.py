"""Seed 004 under real threads and real processes: B2 and B4."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from jobs import finished, messages, take_turn
from meantime import Call, Duplicate, LedgerBusy, Meantime, Thread, blocking

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]

ROOT = Path(__file__).parents[2]


async def in_threads(count: int, make: Callable[[int], Coroutine[Any, Any, Any]]) -> list[Any]:
    """Real threads, each of which hands its coroutine to the one loop, at the same moment."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Barrier(count + 1)

    def one(number: int) -> Any:
        asyncio.run_coroutine_threadsafe(_pass(ready), loop).result(LIMIT)
        return asyncio.run_coroutine_threadsafe(make(number), loop).result(LIMIT)

    with ThreadPoolExecutor(count) as threads:
        running = [loop.run_in_executor(threads, one, number) for number in range(count)]
        await ready.wait()
        return await asyncio.gather(*running)


async def _pass(barrier: asyncio.Barrier) -> None:
    await barrier.wait()


async def processes(*orders: tuple[str, ...]) -> list[Process]:
    """Real processes, let go together."""
    pipe = asyncio.subprocess.PIPE
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.seeds.racing", *order, cwd=ROOT, stdin=pipe, stdout=pipe
        )
        for order in orders
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    return started


async def said(started: list[Process]) -> list[Any]:
    """What each one answered, when all have ended."""
    printed = await asyncio.gather(*(process.communicate() for process in started))
    assert [process.returncode for process in started] == [0] * len(started)
    return [json.loads(stdout.splitlines()[-1]) for stdout, _ in printed]


# -- B2


@pytest.mark.behaviour("F8")
@pytest.mark.scenario("004", "B2")
async def test_many_threads_never_share_an_id(mt: Meantime) -> None:
    """Jobs that many threads create at once all have ids of their own."""

    async def start_some(number: int) -> list[str]:
        thread = mt.thread(f"conv-{number}")
        handles = [await thread.start(Call(asyncio.sleep, 0)) for _ in range(25)]
        await thread.wait(*handles)
        return [handle.id for handle in handles]

    started = await in_threads(16, start_some)
    ids = [id for some in started for id in some]
    assert len(ids) == len(set(ids)) == 400
    assert {task.id for task in await mt.list("all", limit=1_000)} == set(ids)


@pytest.mark.behaviour("F8")
@pytest.mark.scenario("004", "B2")
async def test_many_processes_never_share_an_id(tmp_path: Path) -> None:
    """Processes with ledgers of their own, and one ledger after another, never give an id twice."""
    racing = await processes(*(("ids", str(tmp_path / f"{n % 3}.db"), "300") for n in range(6)))
    ids = [id for answer in await said(racing) for id in answer]
    assert len(ids) == len(set(ids)) == 1_800


@pytest.mark.behaviour("F8")
@pytest.mark.scenario("004", "B2")
async def test_one_of_many_threads_gets_the_id(mt: Meantime) -> None:
    """An id that many threads ask for goes to exactly one of them; its work runs once."""
    ran: list[int] = []

    async def claim(number: int) -> str:
        try:
            await mt.thread(f"conv-{number}").start(Call(ran.append, number), id="the-one")
        except Duplicate as refused:
            return f"{refused.existing} exists"
        return "won"

    answers = await in_threads(16, claim)
    assert sorted(answers) == ["the-one exists"] * 15 + ["won"]
    task = await mt.get("the-one")
    await mt.thread(task.thread).wait("the-one")
    assert ran == [answers.index("won")]
    assert len(await mt.list("all")) == 1


@pytest.mark.behaviour("F8")
@pytest.mark.scenario("004", "B2")
async def test_one_of_many_processes_gets_the_id(tmp_path: Path) -> None:
    """The same with processes that follow each other as owners of one ledger."""
    racing = await processes(*[("claim", str(tmp_path / "work.db"), "the-one")] * 5)
    assert sorted(await said(racing)) == ["duplicate_id"] * 4 + ["won"]


@pytest.mark.behaviour("F8")
@pytest.mark.scenario("004", "B2")
def test_one_of_many_blocking_callers_gets_the_id(ledger: str) -> None:
    """The same through the blocking face, whose callers are threads by nature."""
    with blocking.Meantime.open(ledger) as mt, ThreadPoolExecutor(16) as threads:
        together = threading.Barrier(16)

        def claim(number: int) -> bool:
            together.wait(LIMIT)
            try:
                mt.thread(f"conv-{number}").start(Call(len, "abc"), id="the-one").wait()
            except Duplicate:
                return False
            return True

        assert sum(threads.map(claim, range(16))) == 1
        assert len(mt.list("all")) == 1


# -- B4


@pytest.mark.behaviour("N2")
@pytest.mark.scenario("004", "B4")
async def test_concurrent_emitters_in_threads_tell_once(mt: Meantime, thread: Thread) -> None:
    """Emitters on many threads race for the same ended jobs: one message each, in order."""
    ids = [(await finished(thread, number)).id for number in range(5)]

    async def emit(_: int) -> Any:
        return await take_turn(thread)

    told = [id for some in await in_threads(16, emit) for id in some]
    assert told == ids
    assert len(await messages(thread)) == 5
    assert [notice.task_id for notice in await mt.notices("told")] == ids
    assert await mt.notices() == []


@pytest.mark.behaviour("N2")
@pytest.mark.scenario("004", "B4")
def test_concurrent_emitters_that_block_tell_once(ledger: str) -> None:
    """The same through the blocking face."""
    with blocking.Meantime.open(ledger) as mt, ThreadPoolExecutor(16) as threads:
        thread = mt.thread("conv-1")
        ids = [thread.start(Call(len, "abc")).wait().id for _ in range(5)]
        together = threading.Barrier(16)

        def emit(_: int) -> list[str]:
            transcript = thread.transcript
            together.wait(LIMIT)
            with thread.turn() as turn:
                for notice in turn.notices:
                    transcript.add(notice.id, notice.message())
                turn.ack(transcript=transcript)
            return [notice.task_id for notice in turn.notices]

        assert [id for some in threads.map(emit, range(16)) for id in some] == ids
        assert len(thread.transcript.messages()) == 5


@pytest.mark.behaviour("N2")
@pytest.mark.scenario("004", "B4")
async def test_emitters_that_race_with_completions_tell_once(mt: Meantime, thread: Thread) -> None:
    """Jobs end while emitters look: each is told once, and the conversation has the ledger's order."""

    async def work_and_tell(number: int) -> Any:
        if number % 2:
            return [await take_turn(thread) for _ in range(10)]
        return [await thread.start(Call(asyncio.sleep, 0, step)) for step in range(10)]

    await in_threads(8, work_and_tell)
    await thread.wait()
    await take_turn(thread)
    told = sorted(await mt.notices("told"), key=lambda notice: notice.number)
    assert [notice.number for notice in told] == list(range(1, 41))
    entries = await thread.transcript.entries()
    assert [entry.notice for entry in entries] == [notice.id for notice in told]


@pytest.mark.core("the one race of processes")
@pytest.mark.behaviour("N2")
@pytest.mark.scenario("004", "B4")
async def test_concurrent_emitters_in_processes_tell_once(tmp_path: Path) -> None:
    """Processes race to own the ledger and to tell: exactly one message is persisted per job."""
    ledger = str(tmp_path / "work.db")
    async with Meantime.open(ledger) as mt:
        notices = [(await finished(mt.thread("conv-1"), n)).id + ".1" for n in range(3)]
        with pytest.raises(LedgerBusy):
            await Meantime.open(ledger)
        racing = await processes(*[("tell", ledger, "conv-1")] * 5)
        for process in racing:  # the ledger stays ours until all stand at the door; then they fight for it
            assert process.stdout is not None
            assert await process.stdout.readline() == b"busy\n"
    assert sorted(await said(racing)) == [[], [], [], [], notices]
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("conv-1")
        assert [entry.notice for entry in await thread.transcript.entries()] == notices
        assert await take_turn(thread) == []
