"""The blocking façade: one loop in one thread, asked from anywhere."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Call, Closed, InvalidInput, LedgerBusy, TaskFailed, current
from meantime import thread as async_thread
from meantime.app import meantime as app
from meantime.blocking import Batch, Handle, Meantime, Thread, Transcript, Turn
from outcomes import completed, failed

PAIRS = [(app.Meantime, Meantime)]
PAIRS += [(getattr(async_thread, kind.__name__), kind) for kind in (Thread, Turn, Handle, Batch, Transcript)]


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "work.db")


@pytest.fixture
def mt(ledger: str) -> Iterator[Meantime]:
    with Meantime.open(ledger) as mt:
        yield mt


def portals() -> int:
    return sum(thread.name == "meantime-portal" for thread in threading.enumerate())


@pytest.mark.parametrize(("source", "kind"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_public_member_is_there_and_none_is_async(source: type, kind: type):
    public = {name for name, member in vars(source).items() if not name.startswith("_")}
    slots = set(getattr(source, "__slots__", ()))
    assert public - slots <= set(vars(kind))
    for name in public - slots:
        member = inspect.getattr_static(kind, name)
        assert not inspect.iscoroutinefunction(member)
        assert not inspect.isasyncgenfunction(member)


def test_results_are_wrapped_and_arguments_unwrapped(mt: Meantime):
    thread = mt.thread("conv-1")
    batch = thread.batch("b1")
    handle = batch.start(Call(abs, -1))
    assert (type(thread), type(batch), type(handle)) == (Thread, Batch, Handle)
    assert thread.wait(handle)[0].id == handle.id
    assert thread.get(handle) == handle.get()

    transcript = thread.transcript
    with thread.turn() as turn:
        assert type(turn) is Turn
        for notice in turn.notices:
            transcript.add(notice.id, notice.message())
        turn.ack(transcript=transcript)
    assert thread.transcript.has(f"{handle.id}.1")
    assert repr(thread) == "<blocking <Thread conv-1>>"
    with pytest.raises(AttributeError):
        thread.nonsense  # pyright: ignore[reportAttributeAccessIssue]


def test_errors_pass_through(mt: Meantime):
    handle = mt.thread("conv-1").start(Call(int, "x"))
    with pytest.raises(TaskFailed):
        handle.result()
    with pytest.raises(InvalidInput):
        mt.thread("not an id")


def test_a_turn_left_by_an_error_gives_its_notices_back(mt: Meantime):
    thread = mt.thread("conv-1")
    thread.start(Call(abs, -1)).wait()

    def fails() -> None:
        with thread.turn() as turn:
            assert turn.notices
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  it has no text
        fails()
    with thread.turn() as turn:
        assert [notice.delivery for notice in turn.notices] == [2]
        turn.ack()


def test_many_threads_at_once(mt: Meantime):
    """Each of sixteen callers hands off, waits and is told of its own, on one portal."""

    def caller(number: int) -> list[int]:
        thread = mt.thread(f"conv-{number}")
        for value in range(10):
            assert thread.start(Call(abs, -value)).result() == value
        with thread.turn() as turn:
            turn.ack()
        return [completed(notice).result for notice in turn.notices]

    with ThreadPoolExecutor(16) as pool:
        told = list(pool.map(caller, range(16)))

    assert told == [list(range(10))] * 16
    assert portals() == 1


def test_two_threads_may_share_one_iterator(mt: Meantime):
    thread = mt.thread("conv-1")
    for value in range(10):
        thread.start(Call(abs, value)).wait()
    events = mt.events()
    with ThreadPoolExecutor(4) as pool:
        seen = [future.result().seq for future in [pool.submit(next, events) for _ in range(20)]]

    assert len(set(seen)) == 20


def test_an_interrupt_ends_the_wait_and_not_the_task(mt: Meantime):
    may_finish = threading.Event()
    waiting = threading.Event()
    thread = mt.thread("conv-1")
    handle = thread.start(Call(may_finish.wait))

    def interrupt() -> None:
        waiting.wait()
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        _wait(handle, waiting)
    killer.join()

    assert handle.get().status == "running"
    may_finish.set()
    assert handle.result() is True


def _wait(handle: Handle, waiting: threading.Event) -> None:
    waiting.set()
    handle.wait()


def test_inside_its_own_loop_it_refuses(mt: Meantime):
    """Async work runs on the loop that a blocking call would wait for."""

    async def confused() -> str:
        mt.thread("conv-1")
        return "unreachable"

    async def closes() -> None:
        mt.close()

    for work in (confused, closes):
        with pytest.raises(TaskFailed) as raised:
            mt.thread("conv-1").start(Call(work)).result(timeout=LIMIT)
        assert "would wait for itself for ever" in failed(raised.value.task).message


def test_sync_work_may_hand_off_children(mt: Meantime):
    """It runs on a thread of its own, and what it starts knows its parent."""

    def parent() -> str:
        child = mt.thread("conv-1").start(Call(abs, -7))
        assert child.result() == 7
        return child.id

    handle = mt.thread("conv-1").start(Call(parent))
    child = mt.get(handle.result(timeout=LIMIT))

    assert (child.parent, child.depth) == (handle.id, 1)


def test_closing_lets_go_whoever_waits(ledger: str):
    mt = Meantime.open(ledger)
    thread = mt.thread("conv-1")
    waiting = threading.Semaphore(0)

    def listen(source: Iterator[object]) -> str:
        waiting.release()
        try:
            next(source)
        except (Closed, StopIteration):
            return "let go"
        return "told"

    with ThreadPoolExecutor(2) as pool:
        ears = [pool.submit(listen, source) for source in (thread.wakeups(), mt.events())]
        for _ in ears:
            waiting.acquire()
        mt.close()
        assert [ear.result(timeout=LIMIT) for ear in ears] == ["let go", "let go"]


def test_closing_twice_and_from_two_threads_is_harmless(ledger: str):
    before = portals()
    mt = Meantime.open(ledger)
    mt.thread("conv-1").start(Call(asyncio.Event().wait))
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(mt.close) for _ in range(4)]:
            done.result(timeout=LIMIT)
    mt.close()

    assert portals() == before
    with pytest.raises(Closed):
        mt.thread("conv-1")


def test_a_failed_open_leaves_no_thread(tmp_path: Path):
    before = portals()
    with Meantime.open(tmp_path / "work.db"):
        with pytest.raises(LedgerBusy):
            Meantime.open(tmp_path / "work.db")
        with pytest.raises(InvalidInput):
            Meantime.open(tmp_path)
        assert portals() == before + 1
    assert portals() == before


@pytest.mark.in_process("its progress arrives from another machine, a moment later")
def test_progress_from_a_worker_thread_is_seen(mt: Meantime):
    said, may_finish = threading.Event(), threading.Event()

    def work() -> None:
        current().progress(50)
        said.set()
        may_finish.wait()

    handle = mt.thread("conv-1").start(Call(work))
    said.wait()
    progress = handle.get().progress
    may_finish.set()

    assert progress is not None
    assert progress.percent == 50


def test_a_forked_child_is_told_to_open_its_own(tmp_path: Path):
    program = """
import os, sys
from meantime.blocking import Meantime

mt = Meantime.open(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        mt.thread("conv-1").list()
    except ValueError as problem:
        os._exit(7 if "before a fork" in str(problem) else 8)
    os._exit(9)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
mt.close()
sys.exit(code)
"""
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "work.db")], timeout=LIMIT, check=False
    )
    assert run.returncode == 7
