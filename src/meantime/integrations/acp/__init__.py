"""Agents that speak the Agent Client Protocol. Nothing here loads its SDK before an agent is started."""

from __future__ import annotations

from meantime.ports.session import AgentSettings

from .profiles import profile_of
from .session_host import AcpSessionHost

host = AcpSessionHost


def variant(settings: AgentSettings) -> str:
    """Agents of different habits have different abilities, and so a host for each."""
    return profile_of(settings).name
