"""A stop is a request: what the work does with it decides, on the loop and in a thread."""

from __future__ import annotations

import asyncio
import threading

from meantime.kernel.work import Call
from meantime.ports.engine import Engine

from ..suite.patience import PATIENCE
from .performed_run import (
    Performance,
    check_in_thread,
    clean_up,
    fail_when_stopped,
    give,
    hold,
    look_in_thread,
    sleep,
    swallow,
    wait_in_thread,
)


async def a_stop_stops(engine: Engine) -> None:
    started = asyncio.Event()
    performance = Performance(engine, Call(sleep, started))
    await started.wait()
    performance.stop()
    assert (await performance.report()).stopped


async def stopping_twice_is_harmless(engine: Engine) -> None:
    started = asyncio.Event()
    performance = Performance(engine, Call(sleep, started))
    await started.wait()
    performance.stop()
    performance.stop()
    assert (await performance.report()).stopped


async def stopping_what_has_ended_is_harmless(engine: Engine) -> None:
    performance = Performance(engine, Call(give, 1))
    report = await performance.report()
    performance.stop()
    await asyncio.sleep(0)
    assert report.result is not None
    engine.stop(performance.task)


async def work_may_finish_in_spite_of_a_stop(engine: Engine) -> None:
    started = asyncio.Event()
    performance = Performance(engine, Call(swallow, started))
    await started.wait()
    performance.stop()
    report = await performance.report()
    assert not report.stopped
    assert report.result is not None
    assert report.result.value == "finished"


async def work_may_clean_up_after_a_stop(engine: Engine) -> None:
    started, cleaned = asyncio.Event(), asyncio.Event()
    performance = Performance(engine, Call(clean_up, started, cleaned))
    await started.wait()
    performance.stop()
    assert (await performance.report()).stopped
    assert cleaned.is_set(), "the clean-up was cut short"


async def work_may_fail_after_a_stop(engine: Engine) -> None:
    started = asyncio.Event()
    performance = Performance(engine, Call(fail_when_stopped, started))
    await started.wait()
    performance.stop()
    report = await performance.report()
    assert report.error is not None
    assert report.error.code == "OSError"


async def a_stop_reaches_the_newest_run(engine: Engine) -> None:
    """A run that was left behind ends late: it must not take its successor's stop with it."""
    first, second, let_go = asyncio.Event(), asyncio.Event(), asyncio.Event()
    left_behind = Performance(engine, Call(hold, first, let_go))
    await first.wait()
    newest = Performance(engine, Call(sleep, second), run=2)
    await second.wait()
    let_go.set()
    await left_behind.report()
    newest.stop()
    assert (await newest.report()).stopped


async def work_that_cancels_itself_gives_a_report(engine: Engine) -> None:
    """Or its event loop is coming down: from inside it looks the same, and it is an ending."""
    started = asyncio.Event()
    performance = Performance(engine, Call(sleep, started))
    await started.wait()
    performance.cancel_from_outside()
    report = await performance.report()
    assert not report.stopped, "nobody asked it to stop"
    assert report.result is None
    assert isinstance(report.exception, asyncio.CancelledError)


async def sync_functions_do_not_block_the_loop(engine: Engine) -> None:
    started, go = threading.Event(), threading.Event()
    performance = Performance(engine, Call(wait_in_thread, started, go))
    await asyncio.sleep(0)
    go.set()  # only a loop that is free gets here
    report = await performance.report()
    assert report.result is not None
    assert report.result.value is True


async def a_sync_function_stops_when_it_looks(engine: Engine) -> None:
    started = threading.Event()
    performance = Performance(engine, Call(look_in_thread, started))
    await asyncio.to_thread(started.wait, PATIENCE)
    performance.stop()
    assert (await performance.report()).stopped


async def a_sync_function_stops_when_it_checks(engine: Engine) -> None:
    started = threading.Event()
    performance = Performance(engine, Call(check_in_thread, started))
    await asyncio.to_thread(started.wait, PATIENCE)
    performance.stop()
    assert (await performance.report()).stopped


async def a_sync_function_that_does_not_look_finishes(engine: Engine) -> None:
    started, go = threading.Event(), threading.Event()
    performance = Performance(engine, Call(wait_in_thread, started, go))
    await asyncio.to_thread(started.wait, PATIENCE)
    performance.stop()
    performance.stop()
    await asyncio.sleep(0)
    go.set()
    report = await performance.report()
    assert report.result is not None, "a thread cannot be stopped: what it returns is a result"
