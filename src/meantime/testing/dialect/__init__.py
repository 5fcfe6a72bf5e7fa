"""Proves that a dialect keeps the contract of ports/dialect.py."""

from __future__ import annotations

from .dialect_suite import DIALECT_CHECKS, exercise_dialect

__all__ = ["DIALECT_CHECKS", "exercise_dialect"]
