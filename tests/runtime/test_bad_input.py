"""Hostile values: a typed error or an honest ending, nothing lost, no task stuck."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from meantime import (
    Agent,
    Call,
    Cancelled,
    Completed,
    Failed,
    InlineLimits,
    InvalidInput,
    LedgerError,
    Meantime,
    MeantimeError,
    NotFound,
    Settings,
    TaskFailed,
    TimedOut,
    current,
)
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def mt(request, tmp_path):
    path = ":memory:" if request.param == "memory" else tmp_path / "work.db"
    async with Meantime.open(path) as opened:
        yield opened


async def noop():
    return None


ODD_IDS = ["", "a" * 129, "a b", "../etc/passwd", "a/b", "ü", "a\x00b", "\ud800", "a\nb", 7, None, b"a", 1.5]


@pytest.mark.parametrize("odd", ODD_IDS, ids=ascii)
async def test_odd_ids_are_refused_at_every_door(mt, odd):
    thread = mt.thread("conv-1")
    with pytest.raises(InvalidInput):
        mt.thread(odd)
    for option in ("id", "batch", "tool_call_id", "message_id"):
        if odd is not None:  # None means: not given
            with pytest.raises(InvalidInput):
                await thread.start(Call(noop), **{option: odd})
    with pytest.raises((InvalidInput, NotFound)):
        await thread.get(odd)
    assert await mt.list() == []


@pytest.mark.parametrize(
    "timeout", [0, -2, float("nan"), float("inf"), -float("inf"), 2**70, "60", True, [1]], ids=ascii
)
async def test_impossible_timeouts_are_refused_and_nothing_starts(mt, timeout):
    thread = mt.thread("conv-1")
    with pytest.raises(InvalidInput):
        await thread.start(Call(noop), timeout=timeout)
    with pytest.raises(InvalidInput):
        await thread.wait(timeout="soon")
    assert await mt.list() == []
    assert (await mt.stats())["slots.running"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"description": 5},
        {"description": "lone \ud800"},
        {"description": "x" * 2_001},
        {"retry": "always"},
        {"on_limit": "explode"},
        {"inline": InlineLimits(max_bytes=-1)},
    ],
    ids=ascii,
)
async def test_bad_options_are_refused_before_anything_is_recorded(mt, options):
    thread = mt.thread("conv-1")
    if "on_limit" in options:  # asked only when the thread is full
        await mt.set_limits(per_thread=1)
        await thread.start(Call(asyncio.Event().wait))
    before = len(await mt.list())
    with pytest.raises(InvalidInput):
        await thread.start(Call(noop), **options)
    assert len(await mt.list()) == before


@pytest.mark.parametrize("work", [None, noop, "noop", 5], ids=["None", "a function", "a name", "a number"])
async def test_what_is_not_work_is_refused_with_the_way_to_say_it(mt, work):
    with pytest.raises(InvalidInput, match="Call"):
        await mt.thread("conv-1").start(work)


async def test_a_called_function_instead_of_a_function_is_explained():
    with pytest.raises(InvalidInput, match=r"Call\(fn, 1, 2\)"):
        Call(5)  # pyright: ignore[reportArgumentType, reportCallIssue]


async def test_work_without_a_runner_says_which_runners_there_are(mt):
    with pytest.raises(InvalidInput, match="call"):
        await mt.thread("conv-1").start(Agent("explore", "look around"))


@dataclass
class Point:
    x: int


class Sulky:
    def __repr__(self):
        raise RuntimeError("not today")


def deep(levels: int) -> list:
    nested: list = []
    for _ in range(levels):
        nested = [nested]
    return nested


RESULTS = {
    "nan": (float("nan"), True),
    "infinity inside": ({"a": [float("inf")]}, True),
    "lone surrogate": ("\ud800", True),
    "2**70": (2**70, False),
    "an int of ten thousand digits": (10**10_000, True),
    "NUL": ("a\x00b", False),
    "depth 100,000": (deep(100_000), True),
    "a set": ({1}, False),
    "a dataclass": (Point(3), False),
    "an object": (object(), True),
    "an object that will not be looked at": ([Sulky()], True),
    "bytes": (b"\xff", False),
    "a function": (noop, True),
    "keys that are no strings": ({1: 2, None: 3}, True),
}


@pytest.mark.parametrize("name", RESULTS)
async def test_any_result_ends_its_task_and_says_whether_it_is_whole(mt, name):
    value, lossy = RESULTS[name]
    thread = mt.thread("conv-1")

    async def work(given):
        return given

    handle = await thread.start(Call(work, value))
    task = await handle.wait()
    assert isinstance(task.outcome, Completed)
    assert task.outcome.lossy is lossy
    async with thread.turn() as turn:
        (notice,) = turn.notices
        notice.message().text.encode()  # it can be sent
        await turn.ack()


async def test_numbers_and_text_come_back_exactly(mt):
    value = {"big": 2**70, "nul": "a\x00b", "emoji": "🎉", "float": 0.1, "nested": [[[None]]]}

    async def work():
        return value

    handle = await mt.thread("conv-1").start(Call(work))
    assert await handle.result() == value


async def test_arguments_too_big_for_the_ledger_run_but_only_once(mt):
    big = "x" * 2_000_000

    async def work(text):
        return len(text)

    handle = await mt.thread("conv-1").start(Call(work, big))
    assert await handle.result() == 2_000_000
    stored = (await handle.get()).work
    assert not stored.faithful
    assert len(str(stored.input)) < 10_000


async def test_a_huge_partial_output_is_spilled_like_a_result(mt):
    going = threading.Event()

    def work():
        going.set()
        until(lambda: current().cancelled, "it is to stop")
        return "half " * 20_000

    thread = mt.thread("conv-1")
    handle = await thread.start(Call(work))
    await asyncio.to_thread(going.wait)
    answer = await handle.cancel(wait=True)
    assert isinstance(answer.task.outcome, Cancelled)
    assert answer.task.outcome.spill is not None
    assert Path(answer.task.outcome.spill.path).read_text() == "half " * 20_000
    async with thread.turn() as turn:
        assert answer.task.outcome.spill.path in turn.notices[0].message().text
    output = await handle.output()
    assert output.partial
    assert output.spill is not None
    await mt.purge(handle.id)
    assert not Path(answer.task.outcome.spill.path).exists()


def raiser(kind):
    def work():
        raise kind("out")

    return work


def async_raiser(kind):
    async def work():
        raise kind("out")

    return work


KINDS = [
    ValueError,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
    StopIteration,
    StopAsyncIteration,
    BaseException,
]


@pytest.mark.parametrize("make", [raiser, async_raiser], ids=["sync", "async"])
@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_a_function_raises_its_task_fails(mt, make, kind):
    task = await (await mt.thread("conv-1").start(Call(make(kind)))).wait(timeout=LIMIT)
    assert isinstance(task.outcome, Failed)
    assert "out" in task.outcome.message or kind.__name__ in task.outcome.message
    assert (await mt.stats())["slots.running"] == 0


async def test_a_function_that_cancels_itself_has_failed_not_been_cancelled(mt):
    async def work():
        raise asyncio.CancelledError

    task = await (await mt.thread("conv-1").start(Call(work))).wait(timeout=LIMIT)
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "cancelled_itself"


async def test_an_error_that_cannot_be_printed_is_still_an_ending(mt):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    async def work():
        raise Mute

    task = await (await mt.thread("conv-1").start(Call(work))).wait(timeout=LIMIT)
    assert isinstance(task.outcome, Failed)
    assert task.outcome.code == "Mute"


async def stubborn(released: asyncio.Event):
    """Swallows every cancellation until it is let go."""
    while not released.is_set():
        try:
            await released.wait()
        except asyncio.CancelledError:
            continue
    return "at last"


@pytest.mark.parametrize("stop", ["cancel", "timeout"])
async def test_a_function_that_swallows_cancellation_is_left_behind_and_says_so(stop):
    clock = FakeClock()
    async with Meantime.open(
        ":memory:", clock=clock, settings=Settings(stop_grace=5, stop_deadline=10)
    ) as mt:
        released = asyncio.Event()
        thread = mt.thread("conv-1")
        handle = await thread.start(Call(stubborn, released), timeout=60)
        if stop == "cancel":
            await handle.cancel()
        else:
            await clock.advance(60)
        assert (await handle.get()).status == "cancelling"
        await clock.advance(11)
        task = await handle.get()
        assert isinstance(task.outcome, Cancelled if stop == "cancel" else TimedOut)
        assert task.outcome.abandoned
        assert (await mt.stats())["slots.running"] == 0
        released.set()
        await clock.settle()
        task = await handle.get()
        assert task.late_result == "at last"
        assert isinstance(task.outcome, Cancelled if stop == "cancel" else TimedOut)


async def test_a_sync_function_that_never_looks_is_left_behind(tmp_path):
    clock = FakeClock()
    ended = threading.Event()
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:
        handle = await mt.thread("conv-1").start(Call(ended.wait))
        await handle.cancel()
        await clock.advance(60)
        task = await handle.wait()
        assert isinstance(task.outcome, Cancelled)
        assert task.outcome.abandoned
    ended.set()


async def test_closing_does_not_wait_for_ever_for_work_that_will_not_stop(tmp_path):
    quick = Settings(stop_grace=0.01, stop_deadline=0.02)
    ended = threading.Event()
    async with Meantime.open(tmp_path / "work.db", settings=quick) as mt:
        handle = await mt.thread("conv-1").start(Call(ended.wait))
    async with Meantime.open(tmp_path / "work.db") as mt:
        task = await mt.get(handle.id)
        assert isinstance(task.outcome, Cancelled)
        assert task.outcome.by == "shutdown"
    ended.set()


async def test_progress_takes_anything_and_refuses_what_makes_no_sense(mt):
    seen: list[str] = []

    async def work():
        context = current()
        context.progress(250, phase="x" * 10_000, message="lone \ud800")
        bad: Any
        for bad in (float("nan"), "half", True):
            with pytest.raises(InvalidInput):
                context.progress(bad)
        for number in range(200):
            try:
                context.emit(f"name {number}", number)
            except InvalidInput as problem:
                seen.append(str(problem))
        return "ok"

    task = await (await mt.thread("conv-1").start(Call(work))).wait(timeout=LIMIT)
    assert isinstance(task.outcome, Completed), task.outcome
    assert task.progress is not None
    assert task.progress.percent == 100
    assert len(task.progress.phase) == 500
    assert len(task.outcome.emitted_vars) == 100
    assert len(seen) == 100


async def test_statuses_and_pages_that_do_not_exist_are_refused(mt):
    thread = mt.thread("conv-1")
    with pytest.raises(InvalidInput, match="queued"):
        await thread.list("sleeping")
    for page in ({"limit": 0}, {"limit": 100_000}, {"offset": -1}):
        with pytest.raises(InvalidInput):
            await thread.list("all", **page)
    for limits in ({"per_thread": 0}, {"total": -2}, {"per_thread": 1.5}, {"per_kind": {"call": 0}}):
        with pytest.raises(InvalidInput):
            await mt.set_limits(**limits)


@pytest.mark.parametrize("path", ["", None, 5])
async def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(InvalidInput):
        Meantime.open(path)


async def test_a_folder_or_a_file_of_something_else_is_not_touched(tmp_path):
    with pytest.raises(InvalidInput, match="folder"):
        Meantime.open(tmp_path)
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear reader, " * 100)
    with pytest.raises(MeantimeError):
        await Meantime.open(letter)
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes().startswith(b"Dear")]
    assert kept, "the text is still somewhere, whole"


async def test_everything_says_closed_after_close(tmp_path):
    mt = await Meantime.open(tmp_path / "work.db")
    thread = mt.thread("conv-1")
    await mt.close()
    await mt.close()  # again is harmless
    for verb in (thread.start(Call(noop)), thread.get("t_1"), thread.list(), thread.reminder(), mt.get("x")):
        with pytest.raises(MeantimeError, match="closed"):
            await verb


async def test_somebody_elses_database_is_left_alone(tmp_path):
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE users (name TEXT)")
        db.commit()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger of Meantime"):
        await Meantime.open(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["app.db"]


@pytest.mark.in_process("an owner with workers keeps its key beside the ledger")
async def test_a_clean_close_leaves_little_behind(tmp_path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await (await mt.thread("conv-1").start(Call(noop))).wait()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["work.db", "work.db.lock"]


async def test_a_turn_that_is_not_open_says_so(mt):
    with pytest.raises(InvalidInput, match="Enter it"):
        mt.thread("conv-1").turn().notices


async def test_current_outside_of_work_says_so():
    with pytest.raises(MeantimeError, match="inside background work"):
        current()


@pytest.mark.in_process("a closure is refused at once when it is placed, whether it is to be retried or not")
async def test_a_retry_that_could_never_happen_is_refused(mt):
    with pytest.raises(InvalidInput, match="cannot be retried"):
        await mt.thread("conv-1").start(Call(lambda: 1), retry="idempotent")
    assert await mt.list() == []


async def test_a_failed_result_says_why(mt):
    handle = await mt.thread("conv-1").start(Call(async_raiser(ValueError)))
    with pytest.raises(TaskFailed, match="ValueError: out"):
        await handle.result()


async def test_forgetting_the_ack_is_said_once_and_does_not_spin(caplog):
    """The next wake comes with the next ending, or with the reconciler; not at once, for ever."""
    clock = FakeClock()
    async with Meantime.open(":memory:", clock=clock) as mt:
        thread = mt.thread("conv-1")
        await (await thread.start(Call(noop))).wait()
        wakes = 0

        async def forgetful():
            nonlocal wakes
            async for _ in thread.wakeups():
                wakes += 1
                async with thread.turn():
                    pass

        agent = asyncio.ensure_future(forgetful())
        await clock.settle()
        assert wakes == 1
        await clock.advance_to_alarm(5)
        assert wakes == 2
        await (await thread.start(Call(noop))).wait()
        await clock.settle()
        assert wakes == 3
        agent.cancel()
        warnings = [record for record in caplog.records if "without ack" in record.getMessage()]
        assert len(warnings) == 1


class Matrix:
    def __repr__(self) -> str:
        return "<a matrix>"


async def test_a_result_that_is_kept_only_as_its_repr_is_marked_and_logged_once(mt, caplog):
    thread = mt.thread("conv-1")
    name = f"{__name__}.Matrix"

    async def work():
        return {"found": [Matrix(), Matrix()], "whole": 3}

    with caplog.at_level("WARNING", logger="meantime"):
        for _ in range(3):
            task = await (await thread.start(Call(work))).wait()
            assert task.outcome.reprs == (name,)
            assert task.outcome.result == {"found": ["<a matrix>"] * 2, "whole": 3}
    assert [name in record.getMessage() for record in caplog.records].count(True) == 1
    async with thread.turn() as turn:
        assert name in turn.notices[0].message().text
        await turn.ack()


async def test_a_result_that_is_json_has_no_such_mark(mt):
    async def work():
        return {"set": {1}, "point": Point(3)}

    task = await (await mt.thread("conv-1").start(Call(work))).wait()
    assert task.outcome.reprs == ()
