"""Every way in which work can end is one report; every kind has its runner."""

from __future__ import annotations

import asyncio

from meantime.kernel.errors import InvalidInput
from meantime.kernel.work import Agent, Call
from meantime.ports.engine import Engine

from .performed_run import Performance, give, own_id, throw, throw_in_thread


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
