"""For the tests of those who use Meantime, or write a store, an engine, a carrier or a host for it."""

from __future__ import annotations

from .carrier import CARRIER_CHECKS, CarrierSite, exercise_carrier
from .dialect import DIALECT_CHECKS, exercise_dialect
from .engine import ENGINE_CHECKS, engine_runners, exercise_engine
from .fake_clock import FakeClock
from .fake_host import FakeHost, HostDown
from .fake_session_runner import FakeSessionRunner, Reply, Session
from .scripted_host import LastingScriptedHost, ScriptedHost
from .session_host import SESSION_HOST_CHECKS, Script, exercise_session_host
from .store import STORE_CHECKS, exercise_store
from .talk import TALK_CHECKS, TalkSite, exercise_talk
from .tasks import TASKS_CHECKS, exercise_tasks

__all__ = [
    "CARRIER_CHECKS",
    "DIALECT_CHECKS",
    "ENGINE_CHECKS",
    "SESSION_HOST_CHECKS",
    "STORE_CHECKS",
    "TALK_CHECKS",
    "TASKS_CHECKS",
    "CarrierSite",
    "FakeClock",
    "FakeHost",
    "FakeSessionRunner",
    "HostDown",
    "LastingScriptedHost",
    "Reply",
    "Script",
    "ScriptedHost",
    "Session",
    "TalkSite",
    "engine_runners",
    "exercise_carrier",
    "exercise_dialect",
    "exercise_engine",
    "exercise_session_host",
    "exercise_store",
    "exercise_talk",
    "exercise_tasks",
]
