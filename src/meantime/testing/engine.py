"""The conformance suite of the Engine port: one small check per sentence of its contract.

An engine of your own passes when `await exercise_engine(MyEngine)` returns, where `MyEngine(runners)`
makes one. With a test runner, parametrize over `ENGINE_CHECKS` and hand each one an open engine that
was made with `engine_runners()`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from meantime.kernel.errors import InvalidInput
from meantime.kernel.work import Agent, Call
from meantime.ports.engine import Engine
from meantime.ports.runner import Runner
from meantime.runners.function import FunctionRunner

from .performance import (
    PATIENCE,
    Performance,
    check_in_thread,
    clean_up,
    fail_when_stopped,
    give,
    hold,
    look_in_thread,
    own_id,
    sleep,
    swallow,
    throw,
    throw_in_thread,
    wait_in_thread,
)
from .session import FakeSessionRunner, Reply

Check: TypeAlias = Callable[[Engine], Awaitable[None]]


def engine_runners() -> list[Runner]:
    """What the checks need their engine to know: functions and agents."""
    return [FunctionRunner(), FakeSessionRunner({"stubborn": Reply("finished", stubborn=True)})]


async def exercise_engine(make: Callable[[Sequence[Runner]], Engine]) -> None:
    """Runs every check on a fresh engine; the first that fails is named in the AssertionError."""
    for check in ENGINE_CHECKS:
        name = getattr(check, "__name__", repr(check))
        engine = make(engine_runners())
        await engine.open()
        try:
            await check(engine)
        except Exception as problem:
            raise AssertionError(f"{name}: {problem or type(problem).__name__}") from problem
        finally:
            await engine.close()


# -- endings


async def a_result_is_a_report(engine: Engine) -> None:
    report = await Performance(engine, Call(give, {"a": [1, None, "é"]})).report()
    assert report.result is not None
    assert report.result.value == {"a": [1, None, "é"]}
    assert report.error is None
    assert not report.stopped


async def none_is_a_result(engine: Engine) -> None:
    report = await Performance(engine, Call(give, None)).report()
    assert report.result is not None, "None was taken for no result"
    assert report.result.value is None


async def an_exception_is_a_report(engine: Engine) -> None:
    report = await Performance(engine, Call(throw, ValueError("no such file"))).report()
    assert report.error is not None
    assert report.error.code == "ValueError"
    assert "no such file" in report.error.message
    assert "throw" in report.error.detail, "the traceback is not kept"
    assert isinstance(report.exception, ValueError), "a foreground caller could not raise it"


async def a_base_exception_is_a_report(engine: Engine) -> None:
    for problem in (SystemExit(3), KeyboardInterrupt(), BaseException("odd")):
        for work in (Call(throw, problem), Call(throw_in_thread, problem)):
            report = await Performance(engine, work).report()
            assert report.error is not None, f"{problem!r} gave no error"


async def an_exception_that_cannot_be_read_is_a_report(engine: Engine) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    report = await Performance(engine, Call(throw, Mute())).report()
    assert report.error is not None
    assert report.error.code == "Mute"


async def cancelling_itself_is_no_stop(engine: Engine) -> None:
    report = await Performance(engine, Call(throw, asyncio.CancelledError())).report()
    assert not report.stopped, "nobody had asked it to stop"
    assert report.result is None


async def runs_do_not_share_their_context(engine: Engine) -> None:
    performances = [Performance(engine, Call(own_id), f"t_{number}") for number in range(20)]
    for performance in performances:
        report = await performance.report()
        assert report.result is not None
        assert report.result.value == performance.task.id


# -- stopping


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


async def the_callers_own_cancellation_is_raised(engine: Engine) -> None:
    started = asyncio.Event()
    performance = Performance(engine, Call(sleep, started))
    await started.wait()
    performance.leave()
    assert await performance.was_left(), "the caller was cancelled, and got a report"


# -- threads


async def sync_functions_do_not_block_the_loop(engine: Engine) -> None:
    go = threading.Event()
    performance = Performance(engine, Call(wait_in_thread, go))
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
    go = threading.Event()
    performance = Performance(engine, Call(wait_in_thread, go))
    await asyncio.sleep(0)
    performance.stop()
    performance.stop()
    await asyncio.sleep(0)
    go.set()
    report = await performance.report()
    assert report.result is not None, "a thread cannot be stopped: what it returns is a result"


# -- kinds


async def an_unknown_kind_lists_the_known(engine: Engine) -> None:
    said = ""
    try:
        engine.runner("spell")
    except InvalidInput as problem:
        said = str(problem)
    assert said, "there is no runner for spells"
    assert "spell" in said
    assert "agent, call" in said, f"the known kinds are not listed: {said}"


async def every_kind_has_its_own_runner(engine: Engine) -> None:
    assert engine.runner("call").kind == "call"
    assert engine.runner("agent").kind == "agent"
    report = await Performance(engine, Agent("reader", "read it")).report()
    assert report.result is not None
    assert report.session, "the session did not come through"


ENGINE_CHECKS: tuple[Check, ...] = (
    a_result_is_a_report,
    none_is_a_result,
    an_exception_is_a_report,
    a_base_exception_is_a_report,
    an_exception_that_cannot_be_read_is_a_report,
    cancelling_itself_is_no_stop,
    runs_do_not_share_their_context,
    a_stop_stops,
    stopping_twice_is_harmless,
    stopping_what_has_ended_is_harmless,
    work_may_finish_in_spite_of_a_stop,
    work_may_clean_up_after_a_stop,
    work_may_fail_after_a_stop,
    a_stop_reaches_the_newest_run,
    the_callers_own_cancellation_is_raised,
    sync_functions_do_not_block_the_loop,
    a_sync_function_stops_when_it_looks,
    a_sync_function_stops_when_it_checks,
    a_sync_function_that_does_not_look_finishes,
    an_unknown_kind_lists_the_known,
    every_kind_has_its_own_runner,
)
