"""Every engine passes every check of the public conformance suite."""

from __future__ import annotations

import pytest

from meantime.engines.local import LocalEngine
from meantime.kernel.model import Task
from meantime.testing import ENGINE_CHECKS, engine_runners, exercise_engine
from meantime.testing.engine import Check

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
async def test_the_local_engine_keeps_the_contract(check: Check) -> None:
    engine = LocalEngine(engine_runners())
    await engine.open()
    try:
        await check(engine)
    finally:
        await engine.close()


async def test_exercise_engine_runs_every_check_on_a_fresh_engine() -> None:
    made: list[LocalEngine] = []

    def make(runners: object) -> LocalEngine:
        made.append(LocalEngine(engine_runners()))
        return made[-1]

    await exercise_engine(make)
    assert len(made) == len(ENGINE_CHECKS)


async def test_exercise_engine_names_the_check_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(LocalEngine):
        def stop(self, task: Task) -> None:
            """Hears nothing, so that waiting is of no use from here on. What ends by itself has its time."""
            monkeypatch.setattr("meantime.testing.suite.patience.PATIENCE", 0.1)

    with pytest.raises(AssertionError, match=r"a_stop_stops: not within 0\.1 s: the report"):
        await exercise_engine(Deaf)
