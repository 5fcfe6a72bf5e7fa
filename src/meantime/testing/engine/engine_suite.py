"""All checks of the Engine port, and the one call that runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from meantime.ports.engine import Engine
from meantime.ports.runner import Runner
from meantime.runners.function import FunctionRunner
from meantime.testing.fake_session_runner import FakeSessionRunner
from meantime.testing.suite.failed_check import named_after

from . import ending_checks, stop_checks

Check: TypeAlias = Callable[[Engine], Awaitable[None]]


def engine_runners() -> list[Runner]:
    """The works that the engine must know for the checks: functions and agents."""
    return [FunctionRunner(), FakeSessionRunner()]


async def exercise_engine(make: Callable[[Sequence[Runner]], Engine]) -> None:
    """Runs every check on a fresh engine; the first that fails is named in the AssertionError."""
    for check in ENGINE_CHECKS:
        engine = make(engine_runners())
        await engine.open()
        try:
            with named_after(check):
                await check(engine)
        finally:
            await engine.close()


ENGINE_CHECKS: tuple[Check, ...] = (
    ending_checks.a_result_is_a_report,
    ending_checks.none_is_a_result,
    ending_checks.an_exception_is_a_report,
    ending_checks.a_base_exception_is_a_report,
    ending_checks.an_exception_that_cannot_be_read_is_a_report,
    ending_checks.cancelling_itself_is_no_stop,
    ending_checks.runs_do_not_share_their_context,
    stop_checks.a_stop_stops,
    stop_checks.stopping_twice_is_harmless,
    stop_checks.stopping_what_has_ended_is_harmless,
    stop_checks.work_may_finish_in_spite_of_a_stop,
    stop_checks.work_may_clean_up_after_a_stop,
    stop_checks.work_may_fail_after_a_stop,
    stop_checks.a_stop_reaches_the_newest_run,
    stop_checks.work_that_cancels_itself_gives_a_report,
    stop_checks.sync_functions_do_not_block_the_loop,
    stop_checks.a_sync_function_stops_when_it_looks,
    stop_checks.a_sync_function_stops_when_it_checks,
    stop_checks.a_sync_function_that_does_not_look_finishes,
    ending_checks.an_unknown_kind_lists_the_known,
    ending_checks.every_kind_has_its_own_runner,
)
