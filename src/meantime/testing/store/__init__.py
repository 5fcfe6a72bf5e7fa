"""The conformance suite of the Store port: one small check per sentence of its contract.

A store of your own passes when `await exercise_store(lambda: MyStore(...))` returns. With a test
runner, parametrize over `STORE_CHECKS` instead and hand each one a fresh store that is open.
"""

from __future__ import annotations

from .store_fixture import Check
from .store_suite import STORE_CHECKS, exercise_store

__all__ = ["STORE_CHECKS", "Check", "exercise_store"]
