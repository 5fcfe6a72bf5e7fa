"""For the tests of those who use Meantime, or write a store, an engine, a client or a host for it."""

from __future__ import annotations

from .clock import FakeClock
from .dialect import DIALECT_CHECKS, exercise_dialect
from .engine import ENGINE_CHECKS, engine_runners, exercise_engine
from .host import FakeHost, HostDown
from .session import FakeSessionRunner, Reply, Session
from .store import STORE_CHECKS, exercise_store
from .tasks import TASKS_CHECKS, exercise_tasks

__all__ = [
    "DIALECT_CHECKS",
    "ENGINE_CHECKS",
    "STORE_CHECKS",
    "TASKS_CHECKS",
    "FakeClock",
    "FakeHost",
    "FakeSessionRunner",
    "HostDown",
    "Reply",
    "Session",
    "engine_runners",
    "exercise_dialect",
    "exercise_engine",
    "exercise_store",
    "exercise_tasks",
]
