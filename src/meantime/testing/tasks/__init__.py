"""The conformance suite of the verbs: one small check per sentence of ports.tasks.

An implementation of your own passes when `await exercise_tasks(make)` returns, where `make()` gives an
async context manager of an open one with an empty ledger, which runs functions and commands. With a
test runner, parametrize over `TASKS_CHECKS` and hand each one an implementation of its own.
"""

from __future__ import annotations

from .sample_work import Check
from .tasks_suite import TASKS_CHECKS, exercise_tasks

__all__ = ["TASKS_CHECKS", "Check", "exercise_tasks"]
