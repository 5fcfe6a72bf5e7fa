"""Nothing is sent anywhere."""

from __future__ import annotations

from agents import set_tracing_disabled

set_tracing_disabled(True)
