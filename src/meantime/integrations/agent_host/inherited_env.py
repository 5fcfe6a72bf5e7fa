"""The variables of our own environment that an agent's program gets: only named ones."""

from __future__ import annotations

import os

from meantime.ports.session import AgentSettings


def inherited(names: tuple[str, ...], settings: AgentSettings) -> dict[str, str]:
    """`names` are the host's; the settings of the agent may name more."""
    return {name: os.environ[name] for name in (*names, *settings.inherit) if name in os.environ}
