"""OpenCode: its sessions are told what ended, and work for us."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meantime.ports.clock import Clock
    from meantime.ports.session import SessionHost


def host(clock: Clock) -> SessionHost:
    """For agents with runner = "opencode"."""
    from .session_host import OpenCodeSessionHost

    return OpenCodeSessionHost()
