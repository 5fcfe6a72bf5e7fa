"""The conformance suite of the Engine port: one small check per sentence of its contract.

An engine of your own passes when `await exercise_engine(MyEngine)` returns, where `MyEngine(runners)`
makes one. With a test runner, parametrize over `ENGINE_CHECKS` and hand each one an open engine that
was made with `engine_runners()`.
"""

from __future__ import annotations

from .engine_suite import ENGINE_CHECKS, Check, engine_runners, exercise_engine

__all__ = ["ENGINE_CHECKS", "Check", "engine_runners", "exercise_engine"]
