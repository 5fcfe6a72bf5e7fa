"""Callbacks of a carrier's user, whose exceptions must not end the carrier."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")
logger = logging.getLogger("meantime")


def call_back(callback: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    try:
        callback(*args, **kwargs)
    except Exception:
        logger.exception("A callback of the carrier failed; the carrier goes on.")
