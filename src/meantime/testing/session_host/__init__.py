"""The conformance suite of the SessionHost port: one small check per sentence of its contract.

A host of your own passes when `await exercise_session_host(make, settings, folder)` returns, where `make()`
makes one. Behind it must be an agent, or a scripted model, that does what the prompts of `Script` ask for.
With a test runner, parametrize over `SESSION_HOST_CHECKS` and hand each one a `Bench`.
"""

from __future__ import annotations

from .host_fixture import HostFixture, Script
from .session_host_suite import SESSION_HOST_CHECKS, Check, exercise_session_host

__all__ = ["SESSION_HOST_CHECKS", "Check", "HostFixture", "Script", "exercise_session_host"]
